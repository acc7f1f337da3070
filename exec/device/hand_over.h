// Outputs of calls, on their way to those who judge them.
#ifndef TRITONRL_EXEC_DEVICE_HAND_OVER_H_
#define TRITONRL_EXEC_DEVICE_HAND_OVER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "exec/device/device.h"
#include "exec/device/value.h"

namespace tritonrl::device {

// Copies a value's tensors to the host, and counts the tags of their bytes if `provenance`.
absl::StatusOr<Value> CopyOut(const Value& value, Device& device,
                              std::vector<TagCounts>* provenance);
// Copies all tensors of a call's output to the device's window for outputs, those of the host too;
// a tensor for which it has no room becomes one of the device "meta". As CopyOut without a window.
absl::StatusOr<Value> HandOver(const Value& value, Device& device,
                               std::vector<TagCounts>* provenance);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_HAND_OVER_H_
