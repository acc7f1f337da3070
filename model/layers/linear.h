// Linear layers y = x W^T without bias, W [N, K] as in Hugging Face files, and several of them on
// one input (queries, keys and values; gate and up projection) as one GEMM where their weights are
// adjacent.

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

// Matrices [N_i, K] of one width K, or their gradients.
struct FusedWeights {
  std::vector<at::Tensor> parts;
  at::Tensor fused;  // [sum N_i, K], the same memory; undefined where there are gaps between them
};

// The parts as one matrix, a view of `flat` (one dimension); undefined unless they are contiguous.
at::Tensor Stacked(const at::Tensor& flat, absl::Span<const at::Tensor> parts);

// The matrices that GEMMs run on: `fused` on a GPU where it is defined, as larger GEMMs are faster
// there, else the parts.
absl::Span<const at::Tensor> FusedOrParts(const LayerContext& context, const FusedWeights& weights);

// out[T, sum N_i] = x[T, K] times all of the weights, transposed.
void FusedLinearForward(const LayerContext& context, const at::Tensor& x,
                        const FusedWeights& weights, const at::Tensor& out);

// d_out: [T, sum N_i]. Returns d_x [T, K]; the gradients (fp32) are added to, or written if not
// `accumulate`.
at::Tensor FusedLinearBackward(const LayerContext& context, const at::Tensor& d_out,
                               const at::Tensor& x, const FusedWeights& weights, bool accumulate,
                               const FusedWeights& gradients);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LAYERS_LINEAR_H_
