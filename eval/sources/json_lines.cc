#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "eval/sources/input_files.h"
#include "eval/sources/readers.h"

namespace tritonrl {
namespace {

absl::Status TakeTask(const JsonFields& json, ReadGeneration* read) {
  if (json.Has("task")) {
    ASSIGN_OR_RETURN(read->generation.task, json.Text("task"));
    if (!read->generation.task.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("field 'task' is empty; it must be the id of a task");
  }
  if (!json.Has("level") && !json.Has("problem_id")) {
    return absl::InvalidArgumentError(
        "there is neither 'task' (the id of a task) nor 'level' and 'problem_id' (the numbers of "
        "KernelBench); add one of them");
  }
  ASSIGN_OR_RETURN(read->level, json.Number("level", 1));
  ASSIGN_OR_RETURN(read->problem, json.Number("problem_id", 1));
  return absl::OkStatus();
}

absl::Status TakeLine(const std::string& text, const ResponseStyle& style, ReadGeneration* read) {
  ASSIGN_OR_RETURN(const JsonFields json, JsonFields::Parse(text));
  RETURN_IF_ERROR(TakeTask(json, read));
  ASSIGN_OR_RETURN(read->generation.sample, json.Number("sample", 0));
  if (json.Has("slot")) {
    ASSIGN_OR_RETURN(read->slot, json.Number("slot", 0));
  }
  return ReadProgramFields(json, style, &read->generation);
}

std::string KeyOf(const ReadGeneration& read) {
  return absl::StrCat(read.generation.task, "\n", read.level, "\n", read.problem);
}

// A training step may draw a task twice, in two slots with samples from 0 on. Their samples are
// numbered through in the order of the slots. A sample that occurs twice in a slot has one number,
// so that it is found as a duplicate.
void NumberThroughSlots(std::vector<ReadGeneration>* generations) {
  std::map<std::string, std::map<std::pair<int, int>, int>> numbers;  // by task; slot and sample
  for (const ReadGeneration& each : *generations) {
    numbers[KeyOf(each)][{each.slot, each.generation.sample}] = 0;
  }
  for (auto& [task, samples] : numbers) {
    int next = 0;
    for (auto& [place, number] : samples) number = next++;
  }
  for (ReadGeneration& each : *generations) {
    each.generation.sample = numbers[KeyOf(each)][{each.slot, each.generation.sample}];
  }
}

}  // namespace

absl::StatusOr<ReadInput> ReadJsonLines(const std::string& path, const ResponseStyle& style) {
  ReadInput input{.layout = "JSON Lines"};
  std::map<std::string, int> slots;  // of each task: the slot of its first line
  bool several_slots = false;
  const auto take = [&](const std::string& text, const std::string& where) -> absl::Status {
    ReadGeneration read{.where = where};
    RETURN_IF_ERROR(TakeLine(text, style, &read));
    several_slots |= slots.try_emplace(KeyOf(read), read.slot).first->second != read.slot;
    if (read.generation.source.empty()) read.generation.source = BaseName(where);
    input.generations.push_back(std::move(read));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForEachLine(path, take));
  if (several_slots) NumberThroughSlots(&input.generations);
  return input;
}

}  // namespace tritonrl
