// From times to a speedup that is believed, or the reason why it is not.
#ifndef TRITONRL_EXEC_TIMING_SPEEDUP_CONCLUSION_H_
#define TRITONRL_EXEC_TIMING_SPEEDUP_CONCLUSION_H_

#include <optional>

#include "exec/messages.pb.h"
#include "exec/reference/reference_runner.h"
#include "exec/timing/timing_rounds.h"

namespace tritonrl {

// Fills in times and speedup of a candidate that was right. `timing` is what the rounds on a GPU
// gave; modelled times are in `reference_result` and `result` already. Outcome::INCONCLUSIVE where
// the candidate's time contradicts the clock outside, or is below what the task takes at least.
void ConcludeSpeedup(const ReferenceResult& reference_result,
                     const std::optional<TimingResult>& timing, ExecResult* result);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TIMING_SPEEDUP_CONCLUSION_H_
