// Run-time audit (functionality layer): operators, launches, GPU time and ablations of one run.
#ifndef TRITONRL_VERIFY_PIPELINE_RUNTIME_AUDIT_H_
#define TRITONRL_VERIFY_PIPELINE_RUNTIME_AUDIT_H_

#include "absl/strings/string_view.h"
#include "exec/messages.pb.h"
#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

// Work on at most this many elements a call is scalar post-processing, whatever it is, as long as
// all calls of the operator together touch no more than kMaxScalarElements: a result can be made
// out of many small pieces.
inline constexpr double kScalarElements = 16;
inline constexpr double kMaxScalarElements = 256;
// Single elements that forward may read back into Python: a loop over all of them is Python's work.
inline constexpr int64_t kMaxReadBack = 64;

// The run-time counterpart of the linter's tables (verify/linter/tables.h); a test compares the
// two. True for an operator that does no work of the kernels': a view by its schema, an allocation,
// a copy, cast, fill, concatenation or random numbers by name (as in AtenOp: "aten.cat"), anything
// on at most kScalarElements elements a call. "python.tolist" and the like, elements that leave
// torch (exec/python/element_reads.py), are neutral for such small tensors only. Operators that a
// program registers itself are true as well: what they run inside is listed on its own, and the
// linter follows them.
bool IsNonComputeOp(const AtenOp& op);

// Elements on which operators worked that are neutral only as long as there are few of them: sums
// over all calls of forward's operators above kMaxScalarElements are no post-processing.
double CountScalarElements(const google::protobuf::RepeatedPtrField<AtenOp>& ops);

// True for work on a GPU that computes nothing, by CUPTI's name of it: copies, fills, casts,
// concatenation, random numbers (at::native's kernels, memcpy, memset). The same things as
// IsNonComputeOp lets pass, one level below.
bool IsNonComputeGpuKernel(absl::string_view kernel);

// Adds the candidate's own share of the GPU's time as evidence, or why it was not measured. Fails
// the layer with RUNTIME_COMPUTE when kernels that are neither its own nor plain took more than 5%
// and more than operators on a handful of elements account for.
void CheckGpuTimeShare(const ExecResult& result, LayerResult* functionality);

// Fails the layer with NOT_LAUNCHED, RUNTIME_COMPUTE, HARD_CODED or DECORATION where the run
// contradicts what the source seemed to do; true if there is nothing to object to. Either way the
// layer gets evidence: which kernels were launched with which tensors, and which of them change
// nothing when they are left out (which on its own is no failure: a bias of zeros, an empty tail).
bool AuditRuntime(const ExecResult& result, LayerResult* functionality);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_PIPELINE_RUNTIME_AUDIT_H_
