#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "eval/sources/input_files.h"
#include "eval/sources/readers.h"

namespace tritonrl {

bool IsCudaL1(const JsonFields& json) {
  return json.Has("level_id") && json.Has("task_id") && json.Has("ref_code");
}

absl::StatusOr<ReadInput> ReadCudaL1(const std::string& path) {
  ReadInput input{.layout = "CUDA-L1"};
  std::map<std::string, std::string> places;  // of tasks
  const auto take = [&](const std::string& text, const std::string& where) -> absl::Status {
    ASSIGN_OR_RETURN(const JsonFields json, JsonFields::Parse(text));
    ReadGeneration read{.where = where};
    ASSIGN_OR_RETURN(read.level, json.Number("level_id", 1));
    ASSIGN_OR_RETURN(read.problem, json.Number("task_id", 1));
    Task task{.id = absl::StrCat("level", read.level, "/", read.problem)};
    task.level = read.level;
    const auto [place, fresh] = places.emplace(task.id, where);
    if (!fresh) {
      return absl::InvalidArgumentError(absl::StrCat("task ", read.problem, " of level ",
                                                     read.level, " was already given in ",
                                                     place->second, "; remove one of the lines"));
    }
    ASSIGN_OR_RETURN(task.source, json.Text("ref_code"));
    RETURN_IF_ERROR(CheckTaskSource("field 'ref_code'", task.source));
    if (json.Has("custom_code")) {
      ASSIGN_OR_RETURN(read.generation.code, json.Text("custom_code"));
      read.generation.source = BaseName(where);
      input.generations.push_back(std::move(read));
    }
    input.own_tasks.push_back(std::move(task));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForEachLine(path, take));
  return input;
}

}  // namespace tritonrl
