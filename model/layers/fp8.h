#ifndef TRITONRL_MODEL_LAYERS_FP8_H_
#define TRITONRL_MODEL_LAYERS_FP8_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/status/status.h"
#include "model/cuda/common/fp8_format.h"
#include "model/layers/layer_context.h"
#include "model/layers/linear.h"

// Matrices in FP8, for GEMMs that run on them.
//
// Where the hardware multiplies such numbers (bf16 matrices on a GPU from compute capability 8.9
// on) they are made by LaunchQuantize (model/cuda/fused/kernels.h). Everywhere else the matrix
// keeps its type and only its elements are rounded to what the format holds, so that the same
// GEMMs, summed in the type's own way, mean the same: their scale is a power of two and costs no
// rounding.
//
// Linear layers y = x W^T whose three GEMMs run in FP8 (see fp8.h), summed in fp32.
// Inputs and weights are E4M3; gradients of outputs too, or as GpuOptions says: with scales of
// their own a range of 2^18 within a matrix is enough for them, and a bit of mantissa less costs
// more (measured: docs/performance.md). Shapes as in linear.h.

namespace tritonrl {

// Whether a program may be told to train with them here: an error says which GPUs or types would
// do. `device` as the weights', whose type is `dtype`; on a CPU there is no gain, but nothing is
// wrong.
absl::Status CheckFp8(at::Device device, at::ScalarType dtype);

// Which of a matrix's two layouts GEMMs want.
enum class Fp8Layouts : uint8_t { kRows, kColumns, kBoth };

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
// are NaN. amax: see NewCudaAmax, or undefined. C is a multiple of 16.
Fp8Matrix Quantize(const LayerContext& context, const at::Tensor& x, Fp8Format format,
                   Fp8Layouts copies, const at::Tensor& amax = {});

// The same by ATen alone, on any device, as rounded elements [R, C] of x's type.
at::Tensor RoundToFp8ByAten(const at::Tensor& x, Fp8Format format);

// Whether hardware could take these weights' GEMMs: all sizes are multiples of 16. Others run
// as without this option, on every device.
bool SupportsFp8(const FusedWeights& weights);

// out[T, sum N_i] = x[T, K] times all of the weights, transposed. amax: of x, as in Quantize.
void Fp8Forward(const LayerContext& context, const at::Tensor& x, const at::Tensor& amax,
                const FusedWeights& weights, const at::Tensor& out);
// residual[T, N] + x[T, K] W^T.
at::Tensor Fp8ResidualAdd(const LayerContext& context, const at::Tensor& residual,
                          const at::Tensor& x, const at::Tensor& amax, const at::Tensor& weight);

// The gradient of an output, d_out [T, sum N_i], for both GEMMs below; d_out is needed no more.
Fp8Matrix Fp8Gradient(const LayerContext& context, const at::Tensor& d_out, const at::Tensor& amax);

// d_x[T, K] = d_out W. Takes d_out->rows.
void Fp8BackwardInput(const LayerContext& context, Fp8Matrix* d_out, const FusedWeights& weights,
                      at::Tensor d_x);
// d_W (fp32) = d_out^T x, or += if accumulate. Takes d_out->columns.
void Fp8BackwardWeight(const LayerContext& context, Fp8Matrix* d_out, const at::Tensor& x,
                       const at::Tensor& amax, bool accumulate, const FusedWeights& gradients);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LAYERS_FP8_H_
