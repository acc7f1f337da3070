// Generations that somebody made before, read from files.
#ifndef TRITONRL_EVAL_SOURCES_FILE_SOURCE_H_
#define TRITONRL_EVAL_SOURCES_FILE_SOURCE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "eval/sources/generation.h"
#include "tasks/loader.h"
#include "tasks/response.h"

namespace tritonrl {

struct LoadOptions {
  // Samples of each task; 0: as many as there are, which must be the same number for each task.
  int k = 0;
  // The model whose generations are taken from a folder with several (KernelBench samples).
  std::string model;
  // Of responses whose line has no response_style and code_block.
  ResponseStyle style;
};

struct LoadedGenerations {
  std::string layout;  // for people: "KernelBench run"
  // In the order of the tasks, then samples, then turns. Sample numbers are those of the input.
  std::vector<Generation> generations;
  // The references that the input brings along, which its programs were written for; most bring
  // none.
  std::vector<Task> own_tasks;
  // Ids of tasks without a generation, of the levels that have any. Who computes a share of all
  // tasks must count them or name them.
  std::vector<std::string> tasks_without;
  // Sentences about what was left out, with its place.
  std::vector<std::string> problems;
  int k = 0;  // samples of each other task
};

// Reads all generations of `path`. The contents decide what it is:
//
// - a folder of a KernelBench run, with files level_1_problem_2_sample_0_kernel.py;
// - a folder of KernelBench's published samples: .../level1/MODEL/problem_2/sample_0/kernel.json;
// - the folder of one of our evaluations, with samples.jsonl;
// - a file of ours: samples.jsonl, or eval_*.jsonl or step_*.jsonl of a training run;
// - a file with an object a line: `task`, or `level` and `problem_id`; `sample`; `response` or
//   `code` (generation.h);
// - a file of CUDA-L1, which brings its own tasks. Of these only the ones with the level and number
//   of one of `tasks` are taken; all, if `tasks` is empty.
//
// Numbers are compared with the number at the start of the task's file name. Generations of a level
// that no task has are left out, with a sentence in `problems`.
//
// Nothing is returned before everything is read. InvalidArgument and NotFound say what is wrong,
// where (file, line, field) and what to do: a broken line, file or name; a task that is not among
// `tasks`; two generations with the same task, sample and turn; numbers of samples that differ, or
// below k; symbolic links that lead out of the folder; nothing to read.
absl::StatusOr<LoadedGenerations> LoadGenerations(const std::string& path,
                                                  absl::Span<const Task> tasks,
                                                  const LoadOptions& options = {});

// The loaded generations as a source, which has turn 0 only. Generate returns NotFound for a
// request without a generation.
std::unique_ptr<GenerationSource> MakeFileSource(const LoadedGenerations& loaded);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_SOURCES_FILE_SOURCE_H_
