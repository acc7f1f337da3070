// Runs tasks in the sandbox and says whether they are sound.
#ifndef TRITONRL_TOOLS_TASK_CHECK_TASK_CHECKER_H_
#define TRITONRL_TOOLS_TASK_CHECK_TASK_CHECKER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

struct TaskCheckerOptions {
  int workers = 1;
  std::string sandbox = "bubblewrap";  // or "none", which runs tasks unconfined: for tests only
  double wall_seconds = 20;            // of one task
  int64_t memory_bytes = int64_t{4} << 30;
};

// The result of a task's run. `reason` is "ok" or the name of what is wrong: load_error,
// construct_error, input_error, run_error, needs_gradient, no_tensor_output, unsupported_values,
// not_finite, random_result, constant_result, timeout, out_of_memory, crashed, output_limit,
// process_limit, bad_result.
struct TaskFinding {
  std::string reason;
  std::string message;  // one sentence; "" with "ok"
  // Of each input, in order: "float32[16, 256]" for a tensor, "number" or the type's name for
  // others. Empty if get_inputs() did not return, or if the process was ended.
  std::vector<std::string> inputs;
  bool ok() const { return reason == "ok"; }
};

// Warm workers that run one task each at a time. Thread-safe.
class TaskChecker {
 public:
  // Errors: those of WorkerPool::Start.
  static absl::StatusOr<std::unique_ptr<TaskChecker>> Start(const TaskCheckerOptions& options);

  // Runs `source` in a fresh process: constructs the model and calls forward twice on each of two
  // sets of inputs. Unavailable: the run says nothing about the task, because its worker was lost,
  // twice.
  absl::StatusOr<TaskFinding> Run(const std::string& source);

  // The same for get_inputs() alone, which needs neither the model nor, as far as torch's meta
  // device allows it, memory for the inputs.
  absl::StatusOr<TaskFinding> RunInputs(const std::string& source);

  int workers() const { return pool_->workers(); }

  // A hash of the checker's program and the limits: findings change only if it changes.
  static absl::StatusOr<std::string> Version(const TaskCheckerOptions& options);

 private:
  TaskChecker() = default;
  absl::StatusOr<TaskFinding> RunJob(const std::string& job);
  absl::StatusOr<TaskFinding> RunOnce(const std::string& job);

  std::unique_ptr<WorkerPool> pool_;
  ExecLimits limits_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_TASK_CHECK_TASK_CHECKER_H_
