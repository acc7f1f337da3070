#ifndef TRITONRL_MODEL_LAYERS_LM_HEAD_H_
#define TRITONRL_MODEL_LAYERS_LM_HEAD_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "model/layers/layer_context.h"

// The two ends of the vocabulary. The token embedding; and the LM head: log-probabilities and
// entropy of chosen tokens, a chunk of rows at a time, so that the logits [R, V] are never held
// whole. The backward pass recomputes them.

namespace tritonrl {

struct HeadSettings {
  double temperature = 1.0;
  // 0: as many as fit in 128 MiB of fp32 logits (1.25 GiB on a GPU), at least 256.
  int64_t chunk_rows = 0;
};

// Rows of logits that a GPU holds at a time, where there are as many.
int64_t HeadChunkRowsOnGpu(int64_t chunk_rows, int64_t vocab);

struct HeadOutput {
  at::Tensor log_probs;  // [R] fp32, log softmax(logits / temperature)[target]
  at::Tensor entropy;    // [R] fp32, of softmax(logits / temperature), in nats
  at::Tensor lse;        // [R] fp32, log sum exp(logits / temperature)
};

// hidden: [R, C] after the final norm; weight: [V, C]; targets: [R] int64 in [0, V).
HeadOutput LmHeadForward(const LayerContext& context, const at::Tensor& hidden,
                         const at::Tensor& weight, const at::Tensor& targets,
                         const HeadSettings& settings);

// With p = softmax(logits / temperature):
//   d_logits = d_log_prob / temperature (onehot(target) - p).
// Returns d_hidden [R, C]; d_weight[V, C] (fp32) is added to.
at::Tensor LmHeadBackward(const LayerContext& context, const at::Tensor& hidden,
                          const at::Tensor& weight, const at::Tensor& targets,
                          const HeadSettings& settings, const at::Tensor& lse,
                          const at::Tensor& d_log_probs, at::Tensor d_weight);

// The gradient of the loss with respect to the log-probabilities [end - begin] fp32 of rows begin
// to end, given these and the entropies.
using ChunkLoss = absl::FunctionRef<at::Tensor(
    int64_t begin, int64_t end, const at::Tensor& log_probs, const at::Tensor& entropy)>;

// Forward and backward in one, where each chunk's logits are computed once: on a GPU the GEMM
// with the head's weight is a fortieth of a step of an 8B model. Writes d_hidden [R, C]; d_weight
// [V, C] (fp32) is added to, or written if not `accumulate`. Chunks come in rising order; on the
// CPU `loss` is called once, for all rows.
HeadOutput LmHeadForwardBackward(const LayerContext& context, const at::Tensor& hidden,
                                 const at::Tensor& weight, const at::Tensor& targets,
                                 const HeadSettings& settings, ChunkLoss loss, bool accumulate,
                                 at::Tensor d_hidden, at::Tensor d_weight);

// table: [V, C]; tokens: [T] int64 in [0, V). Returns [T, C].
at::Tensor EmbeddingForward(const LayerContext& context, const at::Tensor& table,
                            const at::Tensor& tokens);

// d_table[V, C] (fp32): row tokens[t] += d_out[t], in rising order of t.
void EmbeddingBackward(const LayerContext& context, const at::Tensor& tokens,
                       const at::Tensor& d_out, at::Tensor d_table);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LAYERS_LM_HEAD_H_
