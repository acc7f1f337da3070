// One run of a candidate whose process never holds data. The process sends commands, an executor
// runs them; the first call of forward is recorded, and the verdict rests on replays of the
// recording, of which the process knows nothing. Here are the expected outputs and the verdict.
#ifndef TRITONRL_EXEC_CLIENT_RUN_CLIENT_RUN_H_
#define TRITONRL_EXEC_CLIENT_RUN_CLIENT_RUN_H_

#include "absl/time/time.h"
#include "exec/executor/executor.h"
#include "exec/messages.pb.h"
#include "exec/reference/job_json.h"
#include "exec/reference/reference_runner.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

struct CandidateRun {
  ExecResult result;
  bool worker_died = false;  // or the executor, under the candidate, which may be why
  // The reference's process failed at an exchange of tensors or at timing, which is an
  // infrastructure error; for want of GPU memory, perhaps.
  bool exchange_failed = false, out_of_memory = false;
};

// Runs the candidate in a fresh process of `clients` (exec/client) and an executor of `executors`.
// `reference_result` must be ok() and hold its tensors in memory of this machine. If the executor
// ends under it, worker_died is set.
//
// Where executors have no GPU, times are modelled. Where they have one, reference and candidate
// take turns at timed calls (exec/timing/replay_rounds.h) while no other request uses the GPU;
// launches have no counts then, as a GPU counts nothing, and the lower bound of times is that of
// the reference's own traffic.
CandidateRun RunClient(const JobContext& context, const ReferenceResult& reference_result,
                       WorkerPool* clients, Executors* executors, const ExecLimits& limits,
                       absl::Time deadline);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CLIENT_RUN_CLIENT_RUN_H_
