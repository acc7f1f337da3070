// Causal self-attention with grouped queries over packed sequences (Vaswani et al., 2017; Ainslie
// et al., 2023): softmax(q k^T / sqrt(D)) v within each sequence, query head h reading key/value
// head h / (H / K).

#ifndef TRITONRL_MODEL_LAYERS_ATTENTION_H_
#define TRITONRL_MODEL_LAYERS_ATTENTION_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "model/cuda/attention/cudnn_attention.h"
#include "model/layers/layer_context.h"
#include "model/layers/packed_batch.h"
#include "model/weights/model_config.h"

namespace tritonrl {

// The sequences of a batch. One is built per pass and used by every layer.
struct SequenceLayout {
  std::vector<int64_t> offsets;  // [n + 1] starts of the non-empty sequences; last = T
  int64_t max_length = 0;
  at::Tensor device_offsets;  // [n + 1] int32 on the GPU; undefined on the CPU
  PackedLengths packed;       // the lengths for cuDNN; undefined on the CPU

  int64_t num_sequences() const { return static_cast<int64_t>(offsets.size()) - 1; }
};

SequenceLayout MakeSequenceLayout(const PackedBatch& batch);

// qk: [T, (H + K) D] after norm and RoPE; qkv: [T, (H + 2K) D], of which only the values are read.
// Returns [T, H D]. *lse becomes the log-sum-exp of each row for the backward pass, [H, T] on the
// CPU, in the kernel's own layout on a GPU.
at::Tensor AttentionForward(const LayerContext& context, const ModelConfig& config,
                            const SequenceLayout& layout, const at::Tensor& qk,
                            const at::Tensor& qkv, at::Tensor* lse);

// Writes the gradient of rotated queries, rotated keys and values to d_qkv [T, (H + 2K) D], given
// out = AttentionForward(...) and d_out [T, H D].
void AttentionBackward(const LayerContext& context, const ModelConfig& config,
                       const SequenceLayout& layout, const at::Tensor& qk, const at::Tensor& qkv,
                       const at::Tensor& out, const at::Tensor& lse, const at::Tensor& d_out,
                       at::Tensor d_qkv);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LAYERS_ATTENTION_H_
