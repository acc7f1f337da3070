// Linear layer y = x W^T without bias, W [N, K] as in Hugging Face files.

#ifndef TRITONRL_MODEL_LINEAR_H_
#define TRITONRL_MODEL_LINEAR_H_

#include <ATen/core/Tensor.h>

#include "model/layer_context.h"

namespace tritonrl {

// out[T, N] = x[T, K] W^T, or += if accumulate. x and out may be column slices of wider tensors.
void LinearForward(const LayerContext& context, const at::Tensor& x, const at::Tensor& weight,
                   bool accumulate, at::Tensor out);

// base[T, N] + x[T, K] W^T: a residual stream and what a layer adds to it.
at::Tensor LinearOnto(const LayerContext& context, const at::Tensor& base, const at::Tensor& x,
                      const at::Tensor& weight);

// d_x[T, K] = d_out[T, N] W, or += if accumulate.
void LinearBackwardInput(const LayerContext& context, const at::Tensor& d_out,
                         const at::Tensor& weight, bool accumulate, at::Tensor d_x);

// d_weight[N, K] (fp32) = d_out[T, N]^T x[T, K], or += if accumulate; T at least 1.
void LinearBackwardWeight(const LayerContext& context, const at::Tensor& d_out, const at::Tensor& x,
                          bool accumulate, at::Tensor d_weight);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LINEAR_H_
