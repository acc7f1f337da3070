// Outcomes of runs that went wrong: in the candidate's own words, in a replay, or in the executor.
#ifndef TRITONRL_EXEC_CLIENT_RUN_RUN_FAILURES_H_
#define TRITONRL_EXEC_CLIENT_RUN_RUN_FAILURES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "exec/client_run/recording_rules.h"
#include "exec/device/session.h"
#include "exec/messages.pb.h"

namespace tritonrl {

// What the candidate's process said of why it did not finish.
RuleFinding OwnWords(const device::Failure& failure);

// A replay that ended with this error.
RuleFinding ReplayFailed(const absl::Status& status);

// A candidate's lack of GPU memory, in bytes.
struct MemoryLack {
  int64_t allowed_bytes = 0;    // that the candidate might take
  int64_t lacking_bytes = 0;    // SessionResult::lacking_bytes
  int64_t reference_bytes = 0;  // ReferenceResult::CallBytes
};

// `result` is OUT_OF_MEMORY, which stays if the candidate wanted more than it was allowed, or more
// than twice what a call of the reference takes. NO_DEVICE_MEMORY if the candidate was allowed less
// than that call takes. If the GPU lacked what was allowed, `device_memory` says that others may
// have had it.
void SetLackOutcome(const MemoryLack& lack, ExecResult* result);

// The session itself ended with this error. `result` has what the worker pool saw, which stays
// where it says more: a limit that the pool enforced. `out_of_memory`: the kernel ended one of the
// candidate's processes for its memory.
void SetSessionOutcome(const absl::Status& status, bool out_of_memory, ExecResult* result);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CLIENT_RUN_RUN_FAILURES_H_
