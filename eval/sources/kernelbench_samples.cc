#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "eval/sources/input_files.h"
#include "eval/sources/readers.h"

namespace tritonrl {
namespace {

constexpr char kFile[] = "kernel.json";

// The number in a folder's name, such as problem_12; -1 if it is another name.
int NumberIn(absl::string_view folder, absl::string_view name) {
  int number = 0;
  if (!absl::ConsumePrefix(&folder, name) || !absl::SimpleAtoi(folder, &number)) return -1;
  return number < 0 ? -1 : number;
}

// The folders' names from the end: sample_S, problem_P, MODEL, levelL. Those that are missing are
// "": the user may have given a folder below.
std::vector<std::string> FoldersFromTheEnd(const std::string& path) {
  std::vector<std::string> parts = absl::StrSplit(path, '/', absl::SkipEmpty());
  std::vector<std::string> folders(4);
  for (size_t i = 0; i < folders.size() && i + 1 < parts.size(); ++i) {
    folders[i] = parts[parts.size() - 2 - i];
  }
  return folders;
}

// A number that stands in the file must be that of its folder.
absl::Status CheckNumber(const JsonFields& json, const char* name, int of_folder) {
  if (!json.Has(name)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int number, json.Number(name, 0));
  if (number == of_folder) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("field '", name, "' is ", number,
                                                 ", but the folder says ", of_folder,
                                                 "; download the file again"));
}

absl::Status TakeJson(const std::string& text, ReadGeneration* read) {
  ASSIGN_OR_RETURN(const JsonFields json, JsonFields::Parse(text));
  if (read->level < 0) {
    ASSIGN_OR_RETURN(read->level, json.Number("level", 1));
  }
  RETURN_IF_ERROR(CheckNumber(json, "level", read->level));
  RETURN_IF_ERROR(CheckNumber(json, "problem_id", read->problem));
  RETURN_IF_ERROR(CheckNumber(json, "sample_id", read->generation.sample));
  ASSIGN_OR_RETURN(read->generation.code, json.Text("kernel"));
  return absl::OkStatus();
}

absl::Status CheckModel(const std::string& folder, const std::string& model,
                        const std::map<std::string, int>& models) {
  const std::string names =
      absl::StrJoin(models, ", ", [](std::string* out, const auto& each) { *out += each.first; });
  if (model.empty() && models.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(folder, " has the generations of ",
                                                   models.size(), " models (", names,
                                                   "); name one of them, or give its folder"));
  }
  if (!model.empty() && models.count(model) == 0) {
    return absl::InvalidArgumentError(absl::StrCat(folder, " has no generations of the model \"",
                                                   model, "\"; it has those of ", names));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsKernelBenchSample(const std::string& file) { return BaseName(file) == kFile; }

absl::StatusOr<ReadInput> ReadKernelBenchSamples(const std::string& folder,
                                                 const std::vector<std::string>& files,
                                                 const std::string& model) {
  ReadInput input{.layout = "KernelBench samples"};
  std::map<std::string, int> models;
  int64_t left = kMaxInputBytes;
  for (const std::string& file : files) {
    if (!IsKernelBenchSample(file)) continue;
    ReadGeneration read{.where = JoinPath(folder, file)};
    const std::vector<std::string> folders = FoldersFromTheEnd(read.where);
    read.generation.sample = NumberIn(folders[0], "sample_");
    read.problem = NumberIn(folders[1], "problem_");
    if (read.generation.sample < 0 || read.problem < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(read.where,
                       ": wanted the folders levelLEVEL/MODEL/problem_PROBLEM/"
                       "sample_SAMPLE, with a number for the last two"));
    }
    ++models[folders[2]];
    if (!model.empty() && folders[2] != model) continue;
    read.level = NumberIn(folders[3], "level");
    ASSIGN_OR_RETURN(const std::string text, ReadText(read.where, &left));
    if (const absl::Status status = TakeJson(text, &read); !status.ok()) {
      return AddContext(status, read.where);
    }
    read.generation.source = absl::StrCat(folders[2], ", ", file);
    input.generations.push_back(std::move(read));
  }
  RETURN_IF_ERROR(CheckModel(folder, model, models));
  return input;
}

}  // namespace tritonrl
