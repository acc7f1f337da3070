// Causal attention with grouped queries over packed sequences by cuDNN, forward and backward, with
// no attention across sequences. Operands are neither padded nor copied unless `per_sequence`.

#ifndef TRITONRL_MODEL_CUDA_ATTENTION_CUDNN_ATTENTION_H_
#define TRITONRL_MODEL_CUDA_ATTENTION_CUDNN_ATTENTION_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "model/cuda/attention/packed_lengths.h"

namespace tritonrl {

// Queries, keys and values, or their gradients: bf16 [T, heads, D], 16-byte aligned. The stride of
// D is 1, that of heads is D, and that of rows is any multiple of 8 elements.
struct AttentionHeads {
  at::Tensor q, k, v;
};

// Attention on one GPU. A plan (a compiled cuDNN graph) is built at the first call of its shape and
// cached; the cache holds at most 512. Calls from several threads are serialized.
class CudnnAttention {
 public:
  struct Options {
    // The backward sums in a fixed order with one call per sequence, so that a sequence's results
    // have the same bits in any batch. Slower.
    bool deterministic = true;
    // One call per sequence, which is copied and padded to PaddedLength rows, so that a few plans
    // serve all lengths. Implied by `deterministic`, and by GPUs of compute capability 8 and 12,
    // for which cuDNN has no packed log-sum-exp.
    bool per_sequence = false;
    // A sequence of at least this number of tokens that is alone in its bucket gets a call without
    // offsets and padding mask, from the second batch with its exact length on. These kernels save
    // 1% of a step's time; building the plans for a length costs four times as much.
    int64_t dense_min_length = 4096;
  };
  CudnnAttention(at::Device device, const Options& options);
  ~CudnnAttention();

  // Whether this GPU runs one call per sequence.
  static bool PerSequence(at::Device device, const Options& options);

  // Whether cuDNN supports heads of `head_dim` elements with x's device and type: bf16 on a GPU, 64
  // or 128 elements.
  static bool Supports(const at::Tensor& x, int64_t head_dim);

  // Writes out [T, H, D] = softmax(q k^T / sqrt(D)) v for each sequence separately. Returns the
  // log-sum-exps [T H] fp32, in an internal order for Backward. Throws c10::Error if cuDNN does not
  // support the shape.
  at::Tensor Forward(const PackedLengths& lengths, const AttentionHeads& in, const at::Tensor& out);

  // Writes the gradients of q, k and v to `d_in`. `lengths`, `in`, `out` and `lse` are those of
  // Forward; d_out is [T, H, D].
  void Backward(const PackedLengths& lengths, const AttentionHeads& in, const at::Tensor& out,
                const at::Tensor& lse, const at::Tensor& d_out, const AttentionHeads& d_in);

  // The number of plans built so far, and the seconds spent on building them.
  int64_t plans_made() const;
  double plan_seconds() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_ATTENTION_CUDNN_ATTENTION_H_
