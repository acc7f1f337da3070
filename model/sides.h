// Products of one input with several matrices that lie side by side (queries, keys and values; gate
// and up projection): as one product with the matrix that they form together, or one by one.

#ifndef TRITONRL_MODEL_SIDES_H_
#define TRITONRL_MODEL_SIDES_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "absl/types/span.h"
#include "model/layer_context.h"

namespace tritonrl {

// Matrices [N_i, K] of one width K, or their gradients.
struct Sides {
  std::vector<at::Tensor> parts;
  at::Tensor all;  // [sum N_i, K], the same memory; undefined where there are gaps between them
};

// The view of `flat` (one dimension) that the matrices form together, undefined if they do not lie
// one behind the other in it.
at::Tensor Stacked(const at::Tensor& flat, absl::Span<const at::Tensor> parts);

// Whether one product is the faster way: on a GPU, where larger products are. The CPU's kernels
// take them one by one.
bool Together(const LayerContext& context, const Sides& weights);

// out[T, sum N_i] = x[T, K] times all of the weights, transposed.
void SidesForward(const LayerContext& context, const at::Tensor& x, const Sides& weights,
                  bool together, const at::Tensor& out);

// d_out: [T, sum N_i]. Returns d_x [T, K]; the gradients (fp32) are added to, or written if not
// `accumulate`. `together` needs `all` of both.
at::Tensor SidesBackward(const LayerContext& context, const at::Tensor& d_out, const at::Tensor& x,
                         const Sides& weights, bool together, bool accumulate,
                         const Sides& gradients);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_SIDES_H_
