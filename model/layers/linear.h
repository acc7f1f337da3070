// Linear layers y = x W^T without bias, W [N, K] as in Hugging Face files. Several layers with the
// same input (queries, keys and values; gate and up projection) run as one GEMM if their weights
// are adjacent.

#ifndef TRITONRL_MODEL_LAYERS_LINEAR_H_
#define TRITONRL_MODEL_LAYERS_LINEAR_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "absl/types/span.h"
#include "model/layers/layer_context.h"

namespace tritonrl {

// out[T, N] = x[T, K] W^T, or += if accumulate. x and out may be column slices of wider tensors.
void LinearForward(const LayerContext& context, const at::Tensor& x, const at::Tensor& weight,
                   bool accumulate, at::Tensor out);

// Returns residual[T, N] + x[T, K] W^T.
at::Tensor LinearResidualAdd(const LayerContext& context, const at::Tensor& residual,
                             const at::Tensor& x, const at::Tensor& weight);

// d_x[T, K] = d_out[T, N] W, or += if accumulate.
void LinearBackwardInput(const LayerContext& context, const at::Tensor& d_out,
                         const at::Tensor& weight, bool accumulate, at::Tensor d_x);

// d_weight[N, K] (fp32) = d_out[T, N]^T x[T, K], or += if accumulate; T at least 1.
void LinearBackwardWeight(const LayerContext& context, const at::Tensor& d_out, const at::Tensor& x,
                          bool accumulate, at::Tensor d_weight);

// Matrices [N_i, K] with the same K, or their gradients.
struct FusedWeights {
  std::vector<at::Tensor> parts;
  at::Tensor fused;  // [sum N_i, K], a view of the parts; undefined if there are gaps between them
};

// Returns the parts as one matrix, a view of the one-dimensional `flat`; undefined unless the parts
// are contiguous.
at::Tensor Stacked(const at::Tensor& flat, absl::Span<const at::Tensor> parts);

// Returns the matrices to run GEMMs on: `fused` if it is defined and on a GPU, where one larger
// GEMM is faster, else the parts.
absl::Span<const at::Tensor> FusedOrParts(const LayerContext& context, const FusedWeights& weights);

// out[T, sum N_i] = x[T, K] W^T, where W is the concatenation of `weights`.
void FusedLinearForward(const LayerContext& context, const at::Tensor& x,
                        const FusedWeights& weights, const at::Tensor& out);

// d_out: [T, sum N_i]. Returns d_x [T, K]; adds to `gradients` (fp32), or overwrites them if not
// `accumulate`.
at::Tensor FusedLinearBackward(const LayerContext& context, const at::Tensor& d_out,
                               const at::Tensor& x, const FusedWeights& weights, bool accumulate,
                               const FusedWeights& gradients);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LAYERS_LINEAR_H_
