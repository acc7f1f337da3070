// Causal attention with grouped queries over packed sequences by cuDNN, forward and backward: no
// padding, no attention across sequences, no copies of operands unless `per_sequence`.

#ifndef TRITONRL_MODEL_CUDA_ATTENTION_CUDNN_ATTENTION_H_
#define TRITONRL_MODEL_CUDA_ATTENTION_CUDNN_ATTENTION_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "model/cuda/attention/packed_lengths.h"

namespace tritonrl {

// bf16 rows of heads, each [T, heads, D] with D contiguous, heads D apart and any stride between
// rows that is a multiple of 8 elements, beginning at multiples of 16 bytes.
struct AttentionHeads {
  at::Tensor q, k, v;
};

// Plans (cuDNN's compiled graphs) are built at the first call of a shape and cached, 512 at most.
// One object serves one GPU; calls from several threads are serialised.
class CudnnAttention {
 public:
  struct Options {
    // Sums of the backward in a fixed order, one call a sequence: a sequence's results have the
    // same bits in any batch. Slower.
    bool deterministic = true;
    // One call a sequence, copied to PaddedLength rows so that a few plans serve all lengths.
    // Implied by `deterministic` and by GPUs of compute capability 8 and 12, for which cuDNN has no
    // packed log-sum-exp.
    bool per_sequence = false;
    // A sequence of at least this many tokens that is alone in its bucket gets a call without
    // offsets and padding mask, from the second batch with its exact length on. These kernels save
    // a hundredth of a step; building the plans for a length costs four times that.
    int64_t dense_min_length = 4096;
  };
  CudnnAttention(at::Device device, const Options& options);
  ~CudnnAttention();

  // Whether this GPU runs one call per sequence.
  static bool PerSequence(at::Device device, const Options& options);

  // Whether cuDNN supports such heads: bf16 on a GPU, 64 or 128 elements.
  static bool Supports(const at::Tensor& x, int64_t head_dim);

  // Writes out [T, H, D] = softmax(q k^T / sqrt(D)) v, each sequence by itself. Returns [T H] fp32
  // log-sum-exps in an order that only Backward knows. Throws c10::Error where cuDNN refuses.
  at::Tensor Forward(const PackedLengths& lengths, const AttentionHeads& in, const at::Tensor& out);

  // Writes the gradients of q, k and v to `d_in`, given what Forward wrote and returned, with the
  // same lengths, and d_out [T, H, D].
  void Backward(const PackedLengths& lengths, const AttentionHeads& in, const at::Tensor& out,
                const at::Tensor& lse, const at::Tensor& d_out, const AttentionHeads& d_in);

  // Plans built so far, and the seconds spent on them.
  int64_t plans_made() const;
  double plan_seconds() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_ATTENTION_CUDNN_ATTENTION_H_
