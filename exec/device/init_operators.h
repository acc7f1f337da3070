// What a constructor may do: arithmetic, initialisers, and what builds tables. By name, never
// "any": an operator that reads files, takes pointers or checks little is not in the list.
#ifndef TRITONRL_EXEC_DEVICE_INIT_OPERATORS_H_
#define TRITONRL_EXEC_DEVICE_INIT_OPERATORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "exec/device/operator_call.h"
#include "exec/device/storage_table.h"

namespace tritonrl::device {

bool IsInitOperator(absl::string_view name);
std::vector<std::string> InitOperators();  // their names; each may have an in-place form too

// PermissionDenied "aten::from_file is never run": internal operators and those that leave the
// candidate's memory.
absl::Status CheckNeverRun(const BoundCall& bound);

// Whether the constructor may run the operator, and its results fit into `bytes_left`.
// PermissionDenied, ResourceExhausted, or an error as torch would give it.
absl::Status CheckInit(const BoundCall& bound, StorageTable& memory, int64_t bytes_left);

// ResourceExhausted: the tensors that the operator makes do not fit into `bytes_left`.
absl::Status CheckSize(const BoundCall& bound, int64_t bytes_left);

// InvalidArgument: arguments at which torch's kernels trap or leave their tensors instead of
// throwing: divisions of integers by 0 or -1, steps that are 0 as integers, norms that do not fit.
absl::Status CheckTraps(const BoundCall& bound, StorageTable& memory);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_INIT_OPERATORS_H_
