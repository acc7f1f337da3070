// Whose kernels took the GPU's time, from one profiled call of forward.
#ifndef TRITONRL_VERIFY_GPU_SHARE_H_
#define TRITONRL_VERIFY_GPU_SHARE_H_

#include "absl/strings/string_view.h"
#include "exec/messages.pb.h"
#include "verify/verdict.pb.h"

namespace tritonrl {

// True for work on a GPU that computes nothing, by CUPTI's name of it: copies, fills, casts,
// concatenation, random numbers (at::native's kernels, memcpy, memset). The same things as
// IsNeutralOp (neutral_ops.h) lets pass, one level below.
bool IsPlainGpuWork(absl::string_view kernel);

// Adds the candidate's own share of the GPU's time as evidence, or why it was not measured. Fails
// the layer with RUNTIME_COMPUTE when kernels that are neither its own nor plain took more than 5%
// and more than operators on a handful of elements account for.
void CheckGpuShare(const ExecResult& result, FunctionalityResult* functionality);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_GPU_SHARE_H_
