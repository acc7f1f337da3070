// Causal attention with grouped queries over packed sequences by cuDNN: one call for sequences of
// any lengths, no padding, no attention across them, forward and backward.
#ifndef TRITONRL_MODEL_CUDA_ATTENTION_H_
#define TRITONRL_MODEL_CUDA_ATTENTION_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tritonrl {

// Where sequences lie in T rows, as cuDNN wants to know it. Made once for a batch.
struct PackedLengths {
  // Both padded with empty sequences to a power of two, so that batches share compiled plans.
  at::Tensor offsets;      // [n + 1] int32 on the device, the first row of each sequence; last T
  at::Tensor lengths;      // [n] int32 on the device
  int64_t max_length = 0;  // of any sequence, rounded up for the same reason
};

// `offsets`: first row of each sequence, then T.
PackedLengths PackLengths(const std::vector<int64_t>& offsets, at::Device device);

// bf16 rows of heads, each [T, heads, D] with D contiguous and any stride between rows.
struct AttentionHeads {
  at::Tensor q, k, v;
};

class CudnnAttention {
 public:
  // deterministic: a backward whose sums have a fixed order, which is slower.
  CudnnAttention(at::Device device, bool deterministic);
  ~CudnnAttention();

  // Whether cuDNN takes such heads.
  static bool Takes(const at::Tensor& x, int64_t head_dim);

  // out [T, H, D]; lse [T, H] fp32 for the backward.
  void Forward(const PackedLengths& lengths, const AttentionHeads& in, at::Tensor out,
               at::Tensor lse);

  // Writes the gradients of q, k and v to `d_in`.
  void Backward(const PackedLengths& lengths, const AttentionHeads& in, const at::Tensor& out,
                const at::Tensor& lse, const at::Tensor& d_out, const AttentionHeads& d_in);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_ATTENTION_H_
