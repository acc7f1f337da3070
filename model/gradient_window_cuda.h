// The window of gradient_window.h on a GPU.

#ifndef TRITONRL_MODEL_GRADIENT_WINDOW_CUDA_H_
#define TRITONRL_MODEL_GRADIENT_WINDOW_CUDA_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tritonrl {

// [elements] fp32 zeros: the first `own` bytes have memory of their own, behind the rest lie `ring`
// bytes again and again; both in whole kMappedUnits (model/cuda/address_range.h). Throws
// c10::Error.
at::Tensor MapCudaWindow(int64_t own, int64_t ring, int64_t elements, at::Device device);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_GRADIENT_WINDOW_CUDA_H_
