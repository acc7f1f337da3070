// Causal attention with grouped queries over packed sequences by cuDNN: no padding, no attention
// across sequences, forward and backward. Operands are read and written where they lie.
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

// Plans (cuDNN's compiled graphs) are made at the first call of a shape and kept, 512 at most. One
// object serves one GPU; calls from several threads take turns.
class CudnnAttention {
 public:
  struct Options {
    // Sums of the backward in a fixed order, one call a sequence, so that a sequence's results are
    // the same bits wherever it lies in whatever batch; slower.
    bool deterministic = true;
    // One call a sequence, which is copied to PaddedLength rows, so that a few plans do for all
    // lengths: always with `deterministic`, and on GPUs of compute capability 8 and 12, for which
    // cuDNN knows no packed log-sum-exp.
    bool per_sequence = false;
    // A sequence of at least so many tokens that no other shares a bucket with gets a call without
    // offsets and padding mask, whose kernels are faster by a hundredth of a step, from the second
    // batch on that has one of its exact length: the plans for a length take as long as four such
    // gains.
    int64_t dense_min_length = 4096;
  };
  CudnnAttention(at::Device device, const Options& options);
  ~CudnnAttention();

  // Whether there is a call for each sequence on this GPU.
  static bool PerSequence(at::Device device, const Options& options);

  // Whether cuDNN takes such heads: bf16 on a GPU, of 64 or 128 elements.
  static bool Supports(const at::Tensor& x, int64_t head_dim);

  // Writes out [T, H, D] = softmax(q k^T / sqrt(D)) v, each sequence by itself. Returns [T H] fp32
  // log-sum-exps in an order that only Backward knows. Throws c10::Error where cuDNN refuses.
  at::Tensor Forward(const PackedLengths& lengths, const AttentionHeads& in, const at::Tensor& out);

  // Writes the gradients of q, k and v to `d_in`, given what Forward wrote and returned, with the
  // same lengths, and d_out [T, H, D].
  void Backward(const PackedLengths& lengths, const AttentionHeads& in, const at::Tensor& out,
                const at::Tensor& lse, const at::Tensor& d_out, const AttentionHeads& d_in);

  // Plans made so far, and the seconds that took.
  int64_t plans_made() const;
  double plan_seconds() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_ATTENTION_CUDNN_ATTENTION_H_
