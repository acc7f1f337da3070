// Whether a task can tell right results from wrong ones: results that ought not to pass are
// compared as a candidate's are.
#ifndef TRITONRL_EXEC_CANDIDATE_TASK_PROBES_H_
#define TRITONRL_EXEC_CANDIDATE_TASK_PROBES_H_

#include "exec/messages.pb.h"
#include "exec/reference/reference_runner.h"

namespace tritonrl {

// Fills in result->probes. `reference_result` must be ok(), and made for a request
// with probe_task.
//   zeros            every output zero
//   constant_mean, constant_first, constant_middle
//                    one value for all elements of an output and all trials: the one of the first
//                    trial's expected output that is nearest to its mean, its first, the one
//                    nearest to the middle between its least and largest
//   identity         an input of the output's shape and type (cast, where only the type differs)
//   half_output      the expected output, its second half zero
//   half_input       what the reference makes of inputs whose first tensor's second half is zero
//   low_precision    the reference with inputs and weights rounded: to bfloat16 with RULES_ROBUST
//                    (its outputs too), to float8_e4m3 with other rules (1e-2 cannot see
//                    bfloat16) and where the task itself is in half precision
// A probe passes when it is right on every trial. It does not apply where it cannot be made, or is
// bit for bit the expected output everywhere.
void ProbeTask(const ExecRequest& request, const ReferenceResult& reference_result,
               ExecResult* result);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CANDIDATE_TASK_PROBES_H_
