// Leaves out tasks that cannot tell a right result from a wrong one.
#ifndef TRITONRL_TRAINER_GRPO_TASK_PREFLIGHT_H_
#define TRITONRL_TRAINER_GRPO_TASK_PREFLIGHT_H_

#include "absl/status/status.h"
#include "parallel/data_parallel.h"
#include "trainer/grpo/prepared_task.h"
#include "trainer/grpo/verification.h"

namespace tritonrl {

// Tries results that ought not to pass (verify/preflight.h) on every task, as the verifier judges.
// Unsound tasks, and those whose reference does not run, go from `tasks->tasks` to a sentence in
// `tasks->problems`; one that could not be checked stays, and a sentence says so. Rank 0 checks
// (with progress on stderr), all ranks leave out the same. Errors: no task is left; a rank is lost.
absl::Status LeaveOutUnsound(const Verification& verification, DataParallel* ranks,
                             PreparedTasks* tasks);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_TASK_PREFLIGHT_H_
