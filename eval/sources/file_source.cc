#include "eval/sources/file_source.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "eval/sources/generation_check.h"
#include "eval/sources/input_files.h"
#include "eval/sources/readers.h"
#include "eval/sources/task_index.h"

namespace tritonrl {
namespace {

constexpr char kWanted[] =
    "; wanted a KernelBench run (level_1_problem_2_sample_0_kernel.py), KernelBench samples "
    "(level1/MODEL/problem_2/sample_0/kernel.json), an evaluation (samples.jsonl) or a file with "
    "one JSON object a line";

absl::StatusOr<ReadInput> ReadFolder(const std::string& path, const LoadOptions& options) {
  const std::string samples = JoinPath(path, "samples.jsonl");
  if (FileExists(samples)) return ReadJsonLines(samples, options.style);
  ASSIGN_OR_RETURN(const std::vector<std::string> files, ListFiles(path));
  const auto run = std::find_if(files.begin(), files.end(), IsKernelBenchRunFile);
  const auto sample = std::find_if(files.begin(), files.end(), IsKernelBenchSample);
  if (run != files.end() && sample != files.end()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has files of two layouts, ", *run,
                                                   " and ", *sample,
                                                   "; give a folder with one of them"));
  }
  if (run != files.end()) return ReadKernelBenchRun(path, files);
  if (sample != files.end()) return ReadKernelBenchSamples(path, files, options.model);
  if (files.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("folder ", path, " is empty", kWanted));
  }
  for (const std::string& file : files) {
    const std::string name = BaseName(file);
    if (absl::StartsWith(name, "eval_") && absl::EndsWith(name, ".jsonl")) {
      return absl::InvalidArgumentError(
          absl::StrCat(path,
                       " is the folder of a training run, with the samples of many steps; "
                       "give one of its files, such as ",
                       JoinPath(path, file)));
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("folder ", path, " has ", files.size(),
                                                 " files, but no generation among them", kWanted));
}

// The first record decides what a file is.
absl::StatusOr<bool> StartsAsCudaL1(const std::string& path) {
  bool first = true, cuda_l1 = false;
  const absl::Status status =
      ForEachLine(path, [&](const std::string& text, const std::string&) -> absl::Status {
        if (!first) return absl::CancelledError();
        first = false;
        if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "[")) {
          return absl::InvalidArgumentError(
              "this is a JSON array; wanted one object a line (jq -c '.[]' FILE > FILE.jsonl)");
        }
        const absl::StatusOr<JsonFields> json = JsonFields::Parse(text);
        cuda_l1 = json.ok() && IsCudaL1(*json);
        return absl::OkStatus();
      });
  if (!status.ok() && !absl::IsCancelled(status)) return status;
  return cuda_l1;
}

// Own tasks with the level and number of one of `tasks`.
void KeepOwnTasks(absl::Span<const Task> tasks, ReadInput* input) {
  if (tasks.empty()) return;
  const TaskIndex index(tasks);
  const auto unwanted = [&index](int level, int problem) {
    return absl::IsNotFound(index.ByNumber(level, problem).status());
  };
  std::erase_if(input->own_tasks,
                [&](const Task& task) { return unwanted(task.level, ProblemNumber(task.id)); });
  std::erase_if(input->generations,
                [&](const ReadGeneration& read) { return unwanted(read.level, read.problem); });
}

class FileSource : public GenerationSource {
 public:
  explicit FileSource(const LoadedGenerations& loaded) : layout_(loaded.layout) {
    for (const Generation& each : loaded.generations) {
      if (each.turn == 0) generations_[{each.task, each.sample}] = each;
    }
  }

  std::string Describe() const override {
    return absl::StrCat(generations_.size(), " generations (", layout_, ")");
  }

  std::string Fingerprint() const override {
    Sha256 hash;
    for (const auto& [key, generation] : generations_) {
      Generation named = generation;
      named.source.clear();  // may name a path
      hash.Update(GenerationToJson(named) + "\n");
    }
    return absl::BytesToHexString(hash.Finish());
  }

  bool converses() const override { return false; }

  absl::Status Generate(absl::Span<const GenerationRequest> requests,
                        absl::FunctionRef<absl::Status(Generation)> emit,
                        const std::function<bool()>& keep_going) override {
    for (const GenerationRequest& request : requests) {
      if (!keep_going()) return absl::CancelledError("stopped");
      const auto found = generations_.find({request.task, request.sample});
      if (request.turn > 0 || found == generations_.end()) {
        return absl::NotFoundError(absl::StrCat("the files have no generation for sample ",
                                                request.sample, ", turn ", request.turn,
                                                ", of task \"", request.task, "\""));
      }
      RETURN_IF_ERROR(emit(found->second));
    }
    return absl::OkStatus();
  }

 private:
  const std::string layout_;
  std::map<std::pair<std::string, int>, Generation> generations_;
};

}  // namespace

absl::StatusOr<LoadedGenerations> LoadGenerations(const std::string& path,
                                                  absl::Span<const Task> tasks,
                                                  const LoadOptions& options) {
  if (options.k < 0) return absl::InvalidArgumentError("k is negative; 0 takes all samples");
  if (!FileExists(path)) {
    return absl::NotFoundError(absl::StrCat(path, " does not exist", kWanted));
  }
  if (DirectoryExists(path)) {
    ASSIGN_OR_RETURN(ReadInput input, ReadFolder(path, options));
    return CheckGenerations(path, std::move(input), tasks, options.k);
  }
  ASSIGN_OR_RETURN(const bool cuda_l1, StartsAsCudaL1(path));
  if (!cuda_l1) {
    ASSIGN_OR_RETURN(ReadInput input, ReadJsonLines(path, options.style));
    return CheckGenerations(path, std::move(input), tasks, options.k);
  }
  ASSIGN_OR_RETURN(ReadInput input, ReadCudaL1(path));
  KeepOwnTasks(tasks, &input);
  if (input.own_tasks.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " (CUDA-L1) has none of the ", tasks.size(), " tasks given"));
  }
  const std::vector<Task> own = std::move(input.own_tasks);
  ASSIGN_OR_RETURN(LoadedGenerations loaded,
                   CheckGenerations(path, std::move(input), own, options.k));
  loaded.own_tasks = own;
  return loaded;
}

std::unique_ptr<GenerationSource> MakeFileSource(const LoadedGenerations& loaded) {
  return std::make_unique<FileSource>(loaded);
}

}  // namespace tritonrl
