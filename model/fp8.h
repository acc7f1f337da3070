// Matrices on 8-bit numbers, for products that run on them.
//
// Where the hardware multiplies such numbers (bf16 matrices on a GPU from compute capability 8.9
// on) they are made by model/cuda/quantize.h. Everywhere else the matrix keeps its type and only
// its elements are rounded to what the format holds, so that the same products, summed in the
// type's own way, mean the same: their scale is a power of two and costs no rounding.

#ifndef TRITONRL_MODEL_FP8_H_
#define TRITONRL_MODEL_FP8_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/status/status.h"
#include "model/cuda/fp8.h"
#include "model/layer_context.h"

namespace tritonrl {

// Whether a program may be told to train with them here: an error says which GPUs or types would
// do. `device` as the weights', whose type is `dtype`; on a CPU there is no gain, but nothing is
// wrong.
absl::Status CheckFp8(at::Device device, at::ScalarType dtype);

// Which of a matrix's two layouts products want.
enum class Fp8Copies : uint8_t { kRows, kColumns, kBoth };

// A matrix [R, C]. In hardware: numbers of the format, to be multiplied by `scale`. Else rounded
// elements, both layouts in the same memory, and no scale.
struct Fp8Matrix {
  at::Tensor rows;     // [R, C], or undefined
  at::Tensor columns;  // [C, R], in hardware R rounded up to 16 with zeros behind, or undefined
  at::Tensor scale;    // [1] fp32 in hardware, else undefined

  bool in_hardware() const { return scale.defined(); }
};

// x: [R, C], contiguous. Scaled by the smallest power of two with which the largest |x| does not
// overflow: nothing is remembered from one matrix to the next. If an element is not finite, all
// are NaN. amax: see CudaNewAmax, or undefined. C is a multiple of 16.
Fp8Matrix Quantize(const LayerContext& context, const at::Tensor& x, Fp8Format format,
                   Fp8Copies copies, const at::Tensor& amax = {});

// The same by ATen alone, on any device, as rounded elements [R, C] of x's type.
at::Tensor RoundToFp8ByAten(const at::Tensor& x, Fp8Format format);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_FP8_H_
