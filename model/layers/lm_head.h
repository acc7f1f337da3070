// The two layers that read the vocabulary: the token embedding, and the LM head, which computes
// log-probabilities and entropy of chosen tokens in chunks of rows, so that the whole logits [R, V]
// never exist. The backward pass recomputes the logits.

#ifndef TRITONRL_MODEL_LAYERS_LM_HEAD_H_
#define TRITONRL_MODEL_LAYERS_LM_HEAD_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "model/layers/layer_context.h"

namespace tritonrl {

struct HeadSettings {
  double temperature = 1.0;
  // Rows of logits at a time. 0: as many as fit in 128 MiB of fp32 logits (1.25 GiB on a GPU), at
  // least 256.
  int64_t chunk_rows = 0;
};

// Returns the maximum number of rows of logits that a GPU holds at a time.
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
// Returns d_hidden [R, C]; adds to d_weight [V, C] (fp32).
at::Tensor LmHeadBackward(const LayerContext& context, const at::Tensor& hidden,
                          const at::Tensor& weight, const at::Tensor& targets,
                          const HeadSettings& settings, const at::Tensor& lse,
                          const at::Tensor& d_log_probs, at::Tensor d_weight);

// Returns the gradient of the loss with respect to the log-probabilities of rows [begin, end), [end
// - begin] fp32, given these log-probabilities and the entropies.
using ChunkLoss = absl::FunctionRef<at::Tensor(
    int64_t begin, int64_t end, const at::Tensor& log_probs, const at::Tensor& entropy)>;

// Runs forward and backward in one pass that computes each chunk's logits only once: on a GPU the
// GEMM with the head's weight takes a fortieth of a step of an 8B model. Writes d_hidden [R, C];
// adds to d_weight [V, C] (fp32), or overwrites it if not `accumulate`. Calls `loss` for the chunks
// in ascending order; on the CPU once, for all rows.
HeadOutput LmHeadForwardBackward(const LayerContext& context, const at::Tensor& hidden,
                                 const at::Tensor& weight, const at::Tensor& targets,
                                 const HeadSettings& settings, ChunkLoss loss, bool accumulate,
                                 at::Tensor d_hidden, at::Tensor d_weight);

// Returns rows of the table, [T, C]. table: [V, C]; tokens: [T] int64 in [0, V).
at::Tensor EmbeddingForward(const LayerContext& context, const at::Tensor& table,
                            const at::Tensor& tokens);

// d_table[V, C] (fp32): row tokens[t] += d_out[t], in ascending order of t.
void EmbeddingBackward(const LayerContext& context, const at::Tensor& tokens,
                       const at::Tensor& d_out, at::Tensor d_table);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LAYERS_LM_HEAD_H_
