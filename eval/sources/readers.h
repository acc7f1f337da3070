// The readers of file_source.h, one for each layout. A reader takes what is there;
// generation_check.h compares it with the tasks.
#ifndef TRITONRL_EVAL_SOURCES_READERS_H_
#define TRITONRL_EVAL_SOURCES_READERS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "eval/sources/generation.h"
#include "eval/sources/json_fields.h"
#include "tasks/loader.h"
#include "tasks/response.h"

namespace tritonrl {

// A generation as it stands in its file.
struct ReadGeneration {
  Generation generation;  // `task` is the name in the file; "" if it has only numbers
  int level = 0;          // of KernelBench
  int problem = 0;        // number in its level
  int slot = 0;           // of a training step, in which a task may occur more than once
  std::string where;      // for messages: "run.jsonl, line 3", or the file's path
};

struct ReadInput {
  std::string layout;  // for people: "KernelBench run"
  std::vector<ReadGeneration> generations;
  std::vector<Task> own_tasks;  // references that the input brings along
};

// Takes turn, source, and the program or response with all that belongs to it.
absl::Status ReadProgramFields(const JsonFields& json, const ResponseStyle& style,
                               Generation* generation);

// A file that scripts/generate_samples.py of KernelBench writes:
// level_LEVEL_problem_PROBLEM_sample_SAMPLE_kernel.py. What KernelBench found out about it is not
// read. `file`: a path below the folder.
bool IsKernelBenchRunFile(const std::string& file);
absl::StatusOr<ReadInput> ReadKernelBenchRun(const std::string& folder,
                                             const std::vector<std::string>& files);

// A file of the published data set kernelbench-samples:
// .../levelLEVEL/MODEL/problem_PROBLEM/sample_SAMPLE/kernel.json. `model`: which model to take, ""
// if there is only one.
bool IsKernelBenchSample(const std::string& file);
absl::StatusOr<ReadInput> ReadKernelBenchSamples(const std::string& folder,
                                                 const std::vector<std::string>& files,
                                                 const std::string& model);

// JSON Lines: sample records of our runs and evaluations, generations (GenerationToJson), or what
// others wrote in that form, with `level` and `problem_id` in the place of `task`. `style`: of
// responses that name none.
absl::StatusOr<ReadInput> ReadJsonLines(const std::string& path, const ResponseStyle& style);

// The files of CUDA-L1: JSON Lines with level_id, task_id, ref_code and custom_code, which is null
// where CUDA-L1 found no faster program.
bool IsCudaL1(const JsonFields& json);
absl::StatusOr<ReadInput> ReadCudaL1(const std::string& path);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_SOURCES_READERS_H_
