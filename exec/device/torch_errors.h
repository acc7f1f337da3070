// LibTorch's exceptions as absl::Status.
#ifndef TRITONRL_EXEC_DEVICE_TORCH_ERRORS_H_
#define TRITONRL_EXEC_DEVICE_TORCH_ERRORS_H_

#include <functional>

#include "absl/status/status.h"

namespace tritonrl::device {

// Runs f without autograd. Unimplemented: torch has no such kernel; ResourceExhausted: no memory;
// Aborted: the GPU failed; InvalidArgument: anything else, with the first line of torch's message.
absl::Status CatchTorch(const std::function<void()>& f);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_TORCH_ERRORS_H_
