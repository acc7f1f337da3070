// RMSNorm (Zhang and Sennrich, 2019): y = weight * x * rstd, rstd = 1 / sqrt(mean(x^2) + eps).

#ifndef TRITONRL_MODEL_LAYERS_RMS_NORM_H_
#define TRITONRL_MODEL_LAYERS_RMS_NORM_H_

#include <ATen/core/Tensor.h>

#include "model/layers/layer_context.h"

namespace tritonrl {

// In all functions `amax`, unless null, becomes the largest |x| of the result for Quantize (fp8.h).
// It stays undefined unless a CUDA kernel computes the result.

// x: [T, C]; weight: [C]. Returns y [T, C]; *rstd: [T] (fp32 for half types).
at::Tensor RmsNormForward(const LayerContext& context, const at::Tensor& x,
                          const at::Tensor& weight, double eps, at::Tensor* rstd,
                          at::Tensor* amax = nullptr);

// Computes y again from the saved rstd, with the same bits.
at::Tensor RecomputeRmsNorm(const LayerContext& context, const at::Tensor& x,
                            const at::Tensor& weight, at::Tensor rstd, at::Tensor* amax = nullptr);

// With xhat = x rstd and g = weight d_y:
//   d_x [T, C] += rstd (g - xhat mean(g xhat)),  d_weight [C] (fp32) += sum over rows of d_y xhat.
// amax: of the new d_x.
void RmsNormBackward(const LayerContext& context, const at::Tensor& x, const at::Tensor& weight,
                     const at::Tensor& rstd, const at::Tensor& d_y, at::Tensor d_x,
                     at::Tensor d_weight, at::Tensor* amax = nullptr);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LAYERS_RMS_NORM_H_
