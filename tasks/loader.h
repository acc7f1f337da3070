// Reads tasks in the KernelBench format from files and folders.
#ifndef TRITONRL_TASKS_LOADER_H_
#define TRITONRL_TASKS_LOADER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tritonrl {

// A task: a reference program in the KernelBench file format. The source defines the model, a class
// with a `forward` method, `get_inputs()` and `get_init_inputs()`. The model is `Model`: a class of
// that name, or the class that a line `Model = NAME` gives. Without either it is the only class
// with a `forward` of its own.
struct Task {
  // Path below the loaded folder without ".py": "level1/07_softmax". Unique in a TaskSet.
  std::string id;
  std::string path;    // The task's file; empty for a generated task.
  std::string source;  // The whole file.
  int level = 0;       // N of the innermost folder named "levelN"; 0 if there is none.
};

// The tasks of a folder. `problems` has one sentence for each file that is not a valid task; it
// names the file, the line and the mistake.
struct TaskSet {
  std::vector<Task> tasks;
  std::vector<std::string> problems;
};

// Reads every "*.py" file below `folder`, up to 16 folders deep, in natural order ("2_x" before
// "10_x"). Names that start with "." or "_" are skipped. `folder` may also be a single file.
//
// A file that is not a valid task is skipped and reported in TaskSet::problems. Errors: NotFound if
// `folder` does not exist, InvalidArgument if it has no valid task (the message has the first
// problems).
absl::StatusOr<TaskSet> LoadTasks(const std::string& folder);

// Reads one task file. Errors name the file and the line.
absl::StatusOr<Task> LoadTaskFile(const std::string& path);

// OK if `source` follows the KernelBench format: it parses as Python and defines, at the top level,
// the model with a method forward (which may be inherited), get_inputs() and get_init_inputs().
// Otherwise InvalidArgument with the message "NAME:LINE: mistake". Does not execute the source.
absl::Status CheckTaskSource(const std::string& name, const std::string& source);

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_LOADER_H_
