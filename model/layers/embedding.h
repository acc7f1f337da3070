// Token embedding: row lookup, and the sum of gradients by token.

#ifndef TRITONRL_MODEL_LAYERS_EMBEDDING_H_
#define TRITONRL_MODEL_LAYERS_EMBEDDING_H_

#include <ATen/core/Tensor.h>

#include "model/layers/layer_context.h"

namespace tritonrl {

// table: [V, C]; tokens: [T] int64 in [0, V). Returns [T, C].
at::Tensor EmbeddingForward(const LayerContext& context, const at::Tensor& table,
                            const at::Tensor& tokens);

// d_table[V, C] (fp32): row tokens[t] += d_out[t], in rising order of t.
void EmbeddingBackward(const LayerContext& context, const at::Tensor& tokens,
                       const at::Tensor& d_out, at::Tensor d_table);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LAYERS_EMBEDDING_H_
