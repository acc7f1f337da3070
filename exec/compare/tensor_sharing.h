// Whether outputs are memory of their own.
#ifndef TRITONRL_EXEC_COMPARE_TENSOR_SHARING_H_
#define TRITONRL_EXEC_COMPARE_TENSOR_SHARING_H_

#include <string>
#include <vector>

#include "exec/compare/tensor_layout.h"

namespace tritonrl {

// A sentence when two of the outputs, or an output and an input, lie in the same memory: at the
// same address, or in dense ranges that overlap. Views that interleave without meeting do not
// count. By what the process said of itself, so that a lie can only harm the liar; "" if none.
std::string FindSharedOutputs(const std::vector<Leaf>& outputs, const std::vector<Leaf>& inputs);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_COMPARE_TENSOR_SHARING_H_
