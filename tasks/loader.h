#ifndef TRITONRL_TASKS_LOADER_H_
#define TRITONRL_TASKS_LOADER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tritonrl {

// One problem: a reference program in the KernelBench file format. The source defines
// `class Model` with a `forward` method, `get_inputs()` and `get_init_inputs()`.
struct Task {
  std::string
      id;  // Path below the loaded folder without ".py": "level1/07_softmax". Unique in a set.
  std::string path;    // The file it was read from; empty for a task that was generated.
  std::string source;  // The whole file.
  int level = 0;       // N of the innermost folder named "levelN"; 0 if there is none.
};

// What a folder held. `problems` has one sentence for each file that was left out; it names the
// file, the line where there is one, and what is wrong.
struct TaskSet {
  std::vector<Task> tasks;
  std::vector<std::string> problems;
};

// Reads every "*.py" file below `folder` (any depth; names that start with "." or "_" are skipped)
// in natural order ("2_x" before "10_x"). `folder` may also be a single file.
//
// A file that is no valid task is left out and reported in TaskSet::problems. Errors: NotFound if
// `folder` does not exist, InvalidArgument if no task is left (the message holds the first
// problems).
absl::StatusOr<TaskSet> LoadTasks(const std::string& folder);

// Reads one task file. Errors name the file and the line.
absl::StatusOr<Task> LoadTaskFile(const std::string& path);

// Ok if `source` follows the KernelBench format: it parses as Python and defines, at the top
// level, class Model with a method forward, get_inputs() and get_init_inputs(). Otherwise one
// sentence "NAME:LINE: what is wrong". Nothing is executed.
absl::Status CheckTaskSource(const std::string& name, const std::string& source);

}  // namespace tritonrl

#endif  // TRITONRL_TASKS_LOADER_H_
