#ifndef TRITONRL_TASKS_LOADER_H_
#define TRITONRL_TASKS_LOADER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/task.h"

namespace tritonrl {

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
