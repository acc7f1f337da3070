// Task preflight: tries results that must not pass on a task before the task is used. A task on
// which one passes cannot tell a kernel's work from its absence and is unsound.
#ifndef TRITONRL_VERIFY_PREFLIGHT_PREFLIGHT_H_
#define TRITONRL_VERIFY_PREFLIGHT_PREFLIGHT_H_

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/messages.pb.h"
#include "tasks/loader.h"
#include "verify/pipeline/verifier.h"

namespace tritonrl {

class DeviceBackend;

enum class TaskState {
  kSound,       // every probe that applies was refused
  kUnsound,     // a probe passed
  kBroken,      // the reference itself does not run: the task's fault
  kNotChecked,  // an infrastructure error, or `stop` said so
};

// "sound", "unsound", "broken", "not_checked".
std::string TaskStateName(TaskState state);

struct TaskCheck {
  std::string task;  // its id
  TaskState state = TaskState::kNotChecked;
  // One sentence: the probes that passed with their numbers, or what went wrong. Empty if sound.
  std::string reason;
  std::vector<TaskProbe> probes;  // all, in the order of exec/candidate/task_probes.h
  double seconds = 0;             // wall time
};

struct PreflightOptions {
  ExecMode mode = EXEC_MODE_PAPER;  // each judges with its own tolerance
  uint64_t seed = 0;                // as the verifier's: the same inputs are tried
  int trials = 5;
  double atol = 1e-2;
  double rtol = 1e-2;
  std::string device_model = "l40s";
  absl::Duration run_limit = absl::Seconds(30);  // of one task
  absl::Duration wait_limit = absl::Minutes(10);
  int parallel = 1;  // tasks at the same time
  std::function<bool()> stop = [] { return false; };
  // Called after each task, on one thread at a time, in the order of ending.
  std::function<void(const TaskCheck&)> done = [](const TaskCheck&) {};
};

// Options with the verifier's mode, seed, trials, tolerances and limits.
PreflightOptions PreflightOptionsFrom(const VerifierOptions& options);

// Checks each task; results in the order of `tasks`.
std::vector<TaskCheck> CheckTasks(const std::vector<Task>& tasks, DeviceBackend* backend,
                                  const PreflightOptions& options);

// The check as one line of JSON: task, state, mode, reason, seconds, probes.
std::string TaskCheckJson(const TaskCheck& check, ExecMode mode);

struct PreflightTotals {
  int sound = 0, unsound = 0, broken = 0, not_checked = 0;
};
PreflightTotals Count(const std::vector<TaskCheck>& checks);

// Checks all tasks with progress on `messages` and, if `out` is not empty, a line of JSON for each
// task in it, written as tasks end. Errors are those of the file.
absl::StatusOr<std::vector<TaskCheck>> RunPreflight(const std::vector<Task>& tasks,
                                                    DeviceBackend* backend,
                                                    const PreflightOptions& options,
                                                    const std::string& out,
                                                    std::FILE* messages = stderr);

// One line for each task that is not sound (its state, name and reason) and the totals.
std::string PreflightTable(const std::vector<TaskCheck>& checks, ExecMode mode);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_PREFLIGHT_PREFLIGHT_H_
