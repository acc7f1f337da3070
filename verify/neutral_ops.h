// The one table of what forward may run beside its kernels, as seen at run time. It says the same
// as the linter's tables (verify/linter/tables.h) say of source text; neutral_ops_test holds them
// together.
#ifndef TRITONRL_VERIFY_NEUTRAL_OPS_H_
#define TRITONRL_VERIFY_NEUTRAL_OPS_H_

#include "absl/strings/string_view.h"
#include "exec/messages.pb.h"

namespace tritonrl {

// Work on at most this many elements a call is scalar post-processing, whatever it is, as long as
// all calls of the operator together touch no more than kMostScalarElements: a result can be made
// out of many small pieces.
inline constexpr double kScalarElements = 16;
inline constexpr double kMostScalarElements = 256;
// Single elements that forward may read back into Python: a loop over all of them is Python's work.
inline constexpr int64_t kMostReadBack = 64;

// True for an operator that does no work of the kernels': a view by its schema, an allocation, a
// copy, cast, fill, concatenation or random numbers by name (as in AtenOp: "aten.cat"), anything on
// at most kScalarElements elements a call. "python.tolist" and the like, elements that leave torch
// (exec/python/element_reads.py), are neutral for such small tensors only. Operators that a program
// registers itself are true as well: what they run inside is listed on its own, and the linter
// follows them.
bool IsNeutralOp(const AtenOp& op);

// Elements on which operators worked that are neutral only as long as there are few of them: sums
// over all calls of forward's operators above kMostScalarElements are no post-processing.
double ScalarElements(const google::protobuf::RepeatedPtrField<AtenOp>& ops);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_NEUTRAL_OPS_H_
