// bf16 matrices on a GPU to the fp8 operands of CudaGemm::MultiplyFp8.
#ifndef TRITONRL_MODEL_CUDA_QUANTIZE_H_
#define TRITONRL_MODEL_CUDA_QUANTIZE_H_

#include <ATen/core/Tensor.h>

#include "model/cuda/fp8.h"

namespace tritonrl {

// Whether the GPU multiplies fp8 numbers: compute capability 8.9 or later.
bool CudaHasFp8(at::Device device);

struct CudaFp8Matrix {
  at::Tensor rows;     // [R, C] of the format, or undefined
  at::Tensor columns;  // [C, R rounded up to 16], zeros behind, or undefined
  at::Tensor scale;    // [1] fp32: what the numbers are to be multiplied by, a power of two, or NaN
};

// A zero, for the kernels that raise it to the largest |x| of what they write. [1] int32, the bits
// of an fp32 number.
at::Tensor CudaNewAmax(const at::Tensor& like);

// x: [R, C] bf16 that CudaTakes, C a multiple of 16. amax: from the kernel that made x, or
// undefined: then x is read once more. Nothing waits for the GPU.
CudaFp8Matrix CudaQuantize(const at::Tensor& x, Fp8Format format, bool rows, bool columns,
                           at::Tensor amax);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_QUANTIZE_H_
