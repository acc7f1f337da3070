// What forward may do outside of kernels: allocate, fill, copy, draw, and a little arithmetic.
#ifndef TRITONRL_EXEC_DEVICE_NEUTRAL_OPERATORS_H_
#define TRITONRL_EXEC_DEVICE_NEUTRAL_OPERATORS_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "exec/device/limits.h"
#include "exec/device/operator_call.h"
#include "exec/device/storage_table.h"

namespace tritonrl::device {

enum class Treatment : uint8_t {
  kAllocate,  // memory without contents
  kFill,      // contents that depend on no tensor
  kCopy,      // copy_: elements of one tensor, perhaps of another type
  kJoin,      // cat, stack: elements of several tensors
  kRandom,    // numbers of a generator
  kOther,     // computes
};
Treatment TreatmentOf(const OperatorCall& call);

// What one call of forward has used of its limits.
struct CallBudget {
  int64_t small_elements = 0;
  int64_t upload_bytes = 0;
  int64_t read_elements = 0;
};

struct ForwardRules {
  SessionLimits limits;
  // Further operators, by name, where the reference draws masks: native_dropout, mul. They run on
  // constants and random numbers alone.
  std::set<std::string> also_allowed;
  // Nobody asks who does the work: forward may compute (CheckCompute).
  bool may_compute = false;
};

// PermissionDenied if the operator computes: "aten::mm computes on 1048576 elements". Counts what
// it uses in the budget.
absl::Status CheckForward(const BoundCall& bound, StorageTable& memory, const ForwardRules& rules,
                          CallBudget& budget);

// PermissionDenied if a copy of so many elements would compute: it rounds, drops a part, or reads
// numbers out of the bits of another type. `made_as` is the type of the source's storage.
absl::Status CheckCast(at::ScalarType from, at::ScalarType made_as, at::ScalarType to,
                       int64_t elements, const SessionLimits& limits);

// PermissionDenied: elements of the target lie on each other or on other elements of the source.
absl::Status CheckOverlap(const TensorRef& target, const TensorRef& source, StorageTable& memory);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_NEUTRAL_OPERATORS_H_
