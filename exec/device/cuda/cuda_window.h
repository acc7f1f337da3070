// A window of GPU memory that another process made and exported as a descriptor.
#ifndef TRITONRL_EXEC_DEVICE_CUDA_CUDA_WINDOW_H_
#define TRITONRL_EXEC_DEVICE_CUDA_CUDA_WINDOW_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "exec/device/cuda/context.h"
#include "exec/device/window.h"

namespace tritonrl::device {

// The descriptor stays the caller's. Errors of the driver.
absl::StatusOr<std::unique_ptr<Window>> OpenCudaWindow(CudaContext* context, int fd, int64_t bytes);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_CUDA_CUDA_WINDOW_H_
