// Biases of linear layers, y = x W^T + b. Some models have them in the projections of attention or
// of the MLP. On the CPU only.

#ifndef TRITONRL_MODEL_LAYERS_BIAS_H_
#define TRITONRL_MODEL_LAYERS_BIAS_H_

#include <ATen/core/Tensor.h>

#include "absl/types/span.h"
#include "model/layers/layer_context.h"

namespace tritonrl {

// Adds the concatenation of `biases` [N_i] to each row of out [T, sum N_i]; does nothing if they
// are undefined.
void BiasForward(const LayerContext& context, absl::Span<const at::Tensor> biases, at::Tensor out);

// Adds the sum over the rows of d_out [T, sum N_i] to the biases' gradients [N_i] (fp32), row after
// row, so that neither threads nor packing change a bit; does nothing if they are undefined.
void BiasBackward(const LayerContext& context, const at::Tensor& d_out,
                  absl::Span<const at::Tensor> gradients);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LAYERS_BIAS_H_
