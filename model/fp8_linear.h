// Linear layers y = x W^T whose three products run on 8-bit numbers (see fp8.h), summed in fp32.
// Inputs and weights are E4M3; gradients of outputs too, or as GpuOptions says: with scales of
// their own a range of 2^18 within a matrix is enough for them, and a bit of mantissa less costs
// more (measured: model/cuda/README.md). Shapes as in linear.h and sides.h.

#ifndef TRITONRL_MODEL_FP8_LINEAR_H_
#define TRITONRL_MODEL_FP8_LINEAR_H_

#include <ATen/core/Tensor.h>

#include "model/fp8.h"
#include "model/layer_context.h"
#include "model/sides.h"

namespace tritonrl {

// Whether hardware could take these weights' products: all sizes are multiples of 16. Others run
// as without this option, on every device.
bool Fp8Takes(const Sides& weights);

// out[T, sum N_i] = x[T, K] times all of the weights, transposed. amax: of x, as in Quantize.
void Fp8Forward(const LayerContext& context, const at::Tensor& x, const at::Tensor& amax,
                const Sides& weights, const at::Tensor& out);
// base[T, N] + x[T, K] W^T.
at::Tensor Fp8Onto(const LayerContext& context, const at::Tensor& base, const at::Tensor& x,
                   const at::Tensor& amax, const at::Tensor& weight);

// The gradient of an output, d_out [T, sum N_i], for both products below; d_out is needed no more.
Fp8Matrix Fp8Gradient(const LayerContext& context, const at::Tensor& d_out, const at::Tensor& amax);

// d_x[T, K] = d_out W. Takes d_out->rows.
void Fp8BackwardInput(const LayerContext& context, Fp8Matrix* d_out, const Sides& weights,
                      at::Tensor d_x);
// d_W (fp32) = d_out^T x, or += if accumulate. Takes d_out->columns.
void Fp8BackwardWeight(const LayerContext& context, Fp8Matrix* d_out, const at::Tensor& x,
                       const at::Tensor& amax, bool accumulate, const Sides& gradients);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_FP8_LINEAR_H_
