// Task preflight: tests tasks, before they are used, with results that must not pass (probes). A
// task on which a probe passes cannot detect that a kernel does no work; it is unsound.
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
  kBroken,      // the task's reference does not run
  kNotChecked,  // an infrastructure error, or `stop` returned true
};

// Returns "sound", "unsound", "broken" or "not_checked".
std::string TaskStateName(TaskState state);

// The result of the preflight of one task.
struct TaskCheck {
  std::string task;  // the task's id
  TaskState state = TaskState::kNotChecked;
  // One sentence: the probes that passed, with their numbers, or the error. Empty if sound.
  std::string reason;
  std::vector<TaskProbe> probes;  // all, in the order of exec/candidate/task_probes.h
  double seconds = 0;             // wall time
};

struct PreflightOptions {
  Rules rules = RULES_STRICT;  // determines the tolerance
  uint64_t seed = 0;           // with the verifier's seed the inputs are the same
  int trials = 5;
  double atol = 1e-2;
  double rtol = 1e-2;
  std::string device_model = "l40s";
  absl::Duration run_limit = absl::Seconds(30);   // wall time of one task's run
  absl::Duration wait_limit = absl::Minutes(10);  // for one task: wait for a worker, and run
  // RunPreflight fails if no task could be checked for so long, for example because no server takes
  // the checks; or if the first tasks all end with an infrastructure error. Infinite: never.
  absl::Duration give_up = absl::InfiniteDuration();
  int parallel = 1;                                   // tasks at the same time
  std::function<bool()> stop = [] { return false; };  // true: start no further task
  // Called after each task, in the order in which tasks end, by one thread at a time.
  std::function<void(const TaskCheck&)> done = [](const TaskCheck&) {};
};

// Returns options with the verifier's rules, seed, trials, tolerances, device model, run limit and
// parallelism.
PreflightOptions PreflightOptionsFrom(const VerifierOptions& options);

// Checks all tasks; returns the results in the order of `tasks`.
std::vector<TaskCheck> CheckTasks(const std::vector<Task>& tasks, DeviceBackend* backend,
                                  const PreflightOptions& options);

// Returns the check as one line of JSON: task, state, rules, reason, seconds, probes.
std::string TaskCheckJson(const TaskCheck& check, Rules rules);

struct PreflightTotals {
  int sound = 0, unsound = 0, broken = 0, not_checked = 0;
};
PreflightTotals Count(const std::vector<TaskCheck>& checks);

// Checks all tasks and shows progress on `messages`. If `out` is not empty, writes one line of JSON
// per task to this file when the task ends. Errors are those of the file; Unavailable after
// options.give_up.
absl::StatusOr<std::vector<TaskCheck>> RunPreflight(const std::vector<Task>& tasks,
                                                    DeviceBackend* backend,
                                                    const PreflightOptions& options,
                                                    const std::string& out,
                                                    std::FILE* messages = stderr);

// Returns a line with state, name and reason for each task that is not sound, and the totals.
std::string PreflightTable(const std::vector<TaskCheck>& checks, Rules rules);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_PREFLIGHT_PREFLIGHT_H_
