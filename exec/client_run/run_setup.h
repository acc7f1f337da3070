// What all parts of one run of a candidate need to know.
#ifndef TRITONRL_EXEC_CLIENT_RUN_RUN_SETUP_H_
#define TRITONRL_EXEC_CLIENT_RUN_RUN_SETUP_H_

#include <algorithm>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "exec/messages.pb.h"
#include "exec/reference/job_json.h"
#include "exec/reference/reference_runner.h"

namespace tritonrl {

// All references must outlive whoever holds this.
struct RunSetup {
  const JobContext& context;
  const ReferenceResult& reference_result;
  const ExecLimits& limits;
  absl::Time deadline;  // of the request

  const ExecRequest& request() const { return context.request; }
  // Whether the work must be the kernels'.
  bool asks_who_computes() const { return !request().torch_may_compute(); }
  // Of what begins now: the candidate's live calls, or all replays.
  absl::Time LatestEnd() const {
    return std::min(deadline, absl::Now() + absl::Seconds(limits.wall_seconds()));
  }
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CLIENT_RUN_RUN_SETUP_H_
