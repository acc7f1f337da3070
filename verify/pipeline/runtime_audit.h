// The run-time audit of the functionality layer: checks the operators, kernel launches, GPU time
// and ablations of one run.
#ifndef TRITONRL_VERIFY_PIPELINE_RUNTIME_AUDIT_H_
#define TRITONRL_VERIFY_PIPELINE_RUNTIME_AUDIT_H_

#include "absl/strings/string_view.h"
#include "exec/messages.pb.h"
#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

// An operator on at most kScalarElements elements per call counts as scalar post-processing if all
// its calls together touch at most kMaxScalarElements. The second limit is needed because many
// small calls can compute a whole result.
inline constexpr double kScalarElements = 16;
inline constexpr double kMaxScalarElements = 256;
// Number of single elements that forward may read back into Python. A loop over more elements
// counts as computation in Python.
inline constexpr int64_t kMaxReadBack = 64;

// True for an operator that is neutral, i.e. does no work that belongs in the kernels: a view (by
// its schema); an allocation, copy, cast, fill, concatenation or random numbers (by its name, as in
// AtenOp: "aten.cat"); scalar post-processing (kScalarElements). Reads of elements into Python
// ("python.tolist" etc., exec/python/element_reads.py) are neutral within the same limits, reads of
// single elements up to kMaxReadBack. An operator that the program registers itself is neutral too:
// the operators that it calls are listed separately, and the linter checks its code. A test
// compares this function with the linter's tables (verify/linter/tables.h).
bool IsNonComputeOp(const AtenOp& op);

// Sum of the elements of all calls of operators that are neutral only as scalar post-processing. A
// sum above kMaxScalarElements is no post-processing.
double CountScalarElements(const google::protobuf::RepeatedPtrField<AtenOp>& ops);

// The counterpart of IsNonComputeOp for GPU kernels, by their names in CUPTI: true for copies,
// fills, casts, concatenation and random numbers (kernels of at::native, memcpy, memset).
bool IsNonComputeGpuKernel(absl::string_view kernel);

// Adds the share of the GPU time in the candidate's own kernels as evidence, or the reason why it
// was not measured. Fails the layer with RUNTIME_COMPUTE if foreign kernels that compute took more
// than 5% of the GPU time plus an allowance of 4 us per call of an operator on few elements.
void CheckGpuTimeShare(const ExecResult& result, LayerResult* functionality);

// Fails the layer with NOT_LAUNCHED, RUNTIME_COMPUTE, HARD_CODED or DECORATION if the run shows
// that the kernels do not compute the result; returns true if the layer passes. It adds evidence of
// the launched kernels with their tensors, and of each kernel whose ablation changes nothing. One
// such kernel among others is no failure: it may add a bias of zeros, or process an empty tail.
bool AuditRuntime(const ExecResult& result, LayerResult* functionality);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_PIPELINE_RUNTIME_AUDIT_H_
