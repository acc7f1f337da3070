// Linear layers whose three GEMMs read FP8 operands and accumulate in fp32. Inputs and weights are
// E4M3; gradients of outputs are E4M3 too unless GpuOptions selects E5M2 (measured:
// docs/performance.md).
//
// On GPUs with FP8 tensor cores (compute capability 8.9 or later), LaunchQuantize converts bf16
// matrices to FP8 operands. Elsewhere a matrix keeps its type and its elements are rounded to
// values of the format; as scales are powers of two, the GEMMs give the same results up to the
// order of sums.

#ifndef TRITONRL_MODEL_LAYERS_FP8_H_
#define TRITONRL_MODEL_LAYERS_FP8_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/status/status.h"
#include "model/cuda/common/fp8_format.h"
#include "model/layers/layer_context.h"
#include "model/layers/linear.h"

namespace tritonrl {

// Returns FailedPrecondition if weights of type `dtype` on `device` cannot train with FP8; the
// message names the GPUs or types that can. OK on a CPU, where FP8 brings no speed-up.
absl::Status CheckFp8(at::Device device, at::ScalarType dtype);

// Layouts of a matrix that the GEMMs read.
enum class Fp8Layouts : uint8_t { kRows, kColumns, kBoth };

// A quantized matrix [R, C]. In hardware it has FP8 values to be multiplied by `scale`; elsewhere
// rounded elements, with both layouts in the same memory and no scale.
struct Fp8Matrix {
  at::Tensor rows;     // [R, C], or undefined
  at::Tensor columns;  // [C, R], in hardware R padded to 16 with zeros, or undefined
  at::Tensor scale;    // [1] fp32 in hardware, else undefined

  bool in_hardware() const { return scale.defined(); }
};

// Quantizes x [R, C], contiguous, C a multiple of 16. The scale is the smallest power of two with
// which this matrix's largest |x| does not overflow. If an element is not finite, all elements
// become NaN. `amax`: that of x (see NewAmax); undefined to compute it here.
Fp8Matrix Quantize(const LayerContext& context, const at::Tensor& x, Fp8Format format,
                   Fp8Layouts copies, const at::Tensor& amax = {});

// Quantize by ATen on any device: returns rounded elements [R, C] of x's type.
at::Tensor RoundToFp8ByAten(const at::Tensor& x, Fp8Format format);

// Whether FP8 supports these weights: all sizes are multiples of 16. Other layers run without FP8
// on every device.
bool SupportsFp8(const FusedWeights& weights);

// out[T, sum N_i] = x[T, K] W^T, where W is the concatenation of `weights`. amax: of x, see
// Quantize.
void Fp8Forward(const LayerContext& context, const at::Tensor& x, const at::Tensor& amax,
                const FusedWeights& weights, const at::Tensor& out);
// Returns residual[T, N] + x[T, K] W^T.
at::Tensor Fp8ResidualAdd(const LayerContext& context, const at::Tensor& residual,
                          const at::Tensor& x, const at::Tensor& amax, const at::Tensor& weight);

// Quantizes the gradient of an output, d_out [T, sum N_i], for both GEMMs below.
Fp8Matrix Fp8Gradient(const LayerContext& context, const at::Tensor& d_out, const at::Tensor& amax);

// d_x[T, K] = d_out W. Frees d_out->rows.
void Fp8BackwardInput(const LayerContext& context, Fp8Matrix* d_out, const FusedWeights& weights,
                      at::Tensor d_x);
// d_W (fp32) = d_out^T x, or += if accumulate. Frees d_out->columns.
void Fp8BackwardWeight(const LayerContext& context, Fp8Matrix* d_out, const at::Tensor& x,
                       const at::Tensor& amax, bool accumulate, const FusedWeights& gradients);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LAYERS_FP8_H_
