// One run of a candidate against the results of the reference runner: the messages to its process,
// the comparison of its outputs, and the conclusion. The candidate's process never decides whether
// its outputs are correct.
#ifndef TRITONRL_EXEC_CANDIDATE_CANDIDATE_RUN_H_
#define TRITONRL_EXEC_CANDIDATE_CANDIDATE_RUN_H_

#include "absl/time/time.h"
#include "exec/reference/job_json.h"
#include "exec/reference/reference_runner.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

struct CandidateRun {
  ExecResult result;
  bool worker_died = false;  // under the candidate, which may be why
  // A call after the ordinary ones ended badly: that is nothing to the result, but the device ought
  // to be looked at.
  bool device_doubtful = false;
  // The exchange of tensors failed, which is an infrastructure error; for want of GPU memory,
  // perhaps.
  bool exchange_failed = false, out_of_memory = false;
};

// Runs the candidate in a fresh process of `runners`. Tolerances stay here. `reference_result` must
// be ok().
CandidateRun RunCandidate(const JobContext& context, const ReferenceResult& reference_result,
                          WorkerPool* runners, const ExecLimits& limits, absl::Time deadline);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CANDIDATE_CANDIDATE_RUN_H_
