// Tensors and values in messages. Contents of tensors lie in memory that both sides have mapped.
#ifndef TRITONRL_EXEC_EXECUTOR_VALUE_MESSAGE_H_
#define TRITONRL_EXEC_EXECUTOR_VALUE_MESSAGE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "exec/device/value.h"
#include "exec/executor/executor.pb.h"

namespace tritonrl::executor {

inline constexpr size_t kRegions = 3;  // numbers of Contents.region in a request

// Memory that this side can read. The other side may write to it at any time.
struct Region {
  absl::string_view memory;
  std::shared_ptr<const void> keeps;  // the mapping; may be null
  // A window: addresses that may have no memory now. A tensor of an answer may be missing there.
  bool is_window = false;
  at::Device device = at::kCPU;
};

// Finds a place where the other side can read contents.
class ContentsPlacer {
 public:
  virtual ~ContentsPlacer() = default;
  // For the first `bytes` of a tensor's memory. ResourceExhausted: there is no room.
  virtual absl::StatusOr<Contents> Place(const at::Tensor& tensor, size_t bytes) = 0;
};

// InvalidArgument: a tensor of a type that the executor does not hold. Errors of the placer.
absl::StatusOr<HostTensor> WriteTensor(const at::Tensor& tensor, ContentsPlacer* placer);
// `placer` may be null if no tensor of the value is on the host.
absl::Status WriteValue(const device::Value& value, ContentsPlacer* placer, Value* message);
void WriteTensorRef(const device::TensorRef& tensor, DeviceTensor* message);

// Read what the other side may have made up. Host tensors are views of their region, and keep it.
// InvalidArgument: a number that cannot be, contents outside of their region, more than a million
// nodes. A tensor that is missing in a window is one of the device "meta".
absl::StatusOr<at::Tensor> ReadTensor(const HostTensor& message, absl::Span<const Region> regions);
absl::StatusOr<device::Value> ReadValue(const Value& message, absl::Span<const Region> regions);
absl::StatusOr<device::TensorRef> ReadTensorRef(const DeviceTensor& message);

}  // namespace tritonrl::executor

#endif  // TRITONRL_EXEC_EXECUTOR_VALUE_MESSAGE_H_
