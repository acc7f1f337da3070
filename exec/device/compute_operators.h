// What forward may run beyond the constructor's operators where nobody asks who does the work:
// layers of networks, losses, linear algebra, transforms. By name, never "any".
#ifndef TRITONRL_EXEC_DEVICE_COMPUTE_OPERATORS_H_
#define TRITONRL_EXEC_DEVICE_COMPUTE_OPERATORS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "exec/device/operator_call.h"
#include "exec/device/storage_table.h"

namespace tritonrl::device {

// As CheckInit, for these operators too. PermissionDenied "aten::x is not executed here".
absl::Status CheckCompute(const BoundCall& bound, StorageTable& memory, int64_t bytes_left);

// Floating point operations of one call that made these tensors: 2 M N K of products and
// convolutions, 4 N^2 D of attention; of all others one for each element of the largest tensor.
double OperatorFlops(const BoundCall& bound, const std::vector<TensorRef>& results);

// Whether the operator draws from a generator that it does not take as an argument.
bool DrawsByDefault(absl::string_view name);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_COMPUTE_OPERATORS_H_
