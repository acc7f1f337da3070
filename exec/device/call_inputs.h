// Inputs of calls, in the storages where the call finds them.
#ifndef TRITONRL_EXEC_DEVICE_CALL_INPUTS_H_
#define TRITONRL_EXEC_DEVICE_CALL_INPUTS_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "absl/status/statusor.h"
#include "exec/device/device.h"
#include "exec/device/geometry.h"

namespace tritonrl::device {

// An input that was written to its storage.
struct WrittenInput {
  TensorRef place;
  at::Tensor source;  // on the host, or in the window for inputs
  at::Tensor kept;    // its bytes on the device, if the source is on the host and that is elsewhere
};

// Writes a tensor over an input's storage: all its elements' bytes, expanded tensors too.
absl::StatusOr<WrittenInput> WriteInput(const at::Tensor& from, const TensorRef& to, Device& device,
                                        double scale = 1);

// Whether the storage holds what WriteInput wrote, unscaled.
bool HoldsInput(const WrittenInput& input, Device& device);
bool HoldInputs(const std::vector<WrittenInput>& inputs, Device& device);  // all of them

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_CALL_INPUTS_H_
