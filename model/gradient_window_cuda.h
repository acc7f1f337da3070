// The window of gradient_window.h on a GPU.

#ifndef TRITONRL_MODEL_GRADIENT_WINDOW_CUDA_H_
#define TRITONRL_MODEL_GRADIENT_WINDOW_CUDA_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tritonrl {

// Bytes of which memory on a GPU is mapped in multiples; checked against what the driver says.
inline constexpr int64_t kCudaWindowUnit = int64_t{2} << 20;

// [elements] fp32 zeros: the first `own` bytes have memory of their own, behind the rest lie `ring`
// bytes again and again. Throws c10::Error.
at::Tensor MapCudaWindow(int64_t own, int64_t ring, int64_t elements, at::Device device);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_GRADIENT_WINDOW_CUDA_H_
