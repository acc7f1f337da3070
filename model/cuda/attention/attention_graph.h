// cuDNN's attention graphs: from a shape to an execution plan, and the operands of one call.

#ifndef TRITONRL_MODEL_CUDA_ATTENTION_ATTENTION_GRAPH_H_
#define TRITONRL_MODEL_CUDA_ATTENTION_ATTENTION_GRAPH_H_

#include <ATen/core/Tensor.h>
#include <cudnn_frontend.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>

#include "model/cuda/attention/cudnn_attention.h"

namespace tritonrl {

// Tensors of a graph; offsets have kOffsets and the numbers after it, one for each stride.
enum AttentionUid : int64_t {
  kQ = 1,
  kK,
  kV,
  kOut,
  kLse,
  kDOut,
  kDQ,
  kDK,
  kDV,
  kLengths,
  kOffsets = 100
};

// Everything that a plan depends on.
struct AttentionShape {
  bool backward = false;
  bool deterministic = false;
  // One sequence of exactly max_length rows, no offsets and no lengths; else `sequences` of them,
  // none longer than max_length, each at its offset.
  bool dense = false;
  int64_t sequences = 1, max_length = 0;
  int64_t heads = 0, keys = 0, dim = 0;
  // Elements from one row to the next: q, k, v, out, d_out, d_q, d_k, d_v; the latter four for a
  // backward.
  std::array<int64_t, 8> strides = {};

  // clang-tidy takes the 0 in what the compiler writes here for a pointer.
  auto operator<=>(const AttentionShape&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct AttentionPlan {
  std::shared_ptr<cudnn_frontend::graph::Graph> graph;
  std::map<int64_t, int64_t> offsets;  // stride of rows -> uid of the offsets in such elements
};

// The graph before cuDNN chooses kernels. capability: of the GPU (90: Hopper), with which
// validate() needs no GPU; 0: that of the current one.
AttentionPlan MakeAttentionGraph(const AttentionShape& shape, int capability = 0);

// The graph with its kernels. Throws c10::Error with cuDNN's reason if the handle's GPU has none.
AttentionPlan BuildAttentionPlan(const AttentionShape& shape, cudnnHandle_t handle);

// d_out and d_in are undefined in a forward.
struct AttentionOperands {
  AttentionHeads in;
  at::Tensor out, lse, d_out;
  AttentionHeads d_in;

  bool backward() const { return d_out.defined(); }

  // Rows [begin, begin + length) of share number `share` of `shares` equal groups of heads. lse is
  // [H, T] here.
  AttentionOperands Part(int64_t begin, int64_t length, int64_t share, int64_t shares) const;

  // Heads and strides; the rest is the caller's.
  AttentionShape Shape() const;

  // Addresses by AttentionUid.
  std::unordered_map<int64_t, void*> Where() const;
};

// One sequence's operands, copied and padded with rows of zeros, so that sequences of many lengths
// share the plans of a few. Attention is causal: no row of the sequence reads the padding, and the
// padding's gradients are zero.
class PaddedOperands {
 public:
  // sequence: [length, heads, D] and [H, length] log-sum-exps, in which `length` is below `rows`.
  PaddedOperands(const AttentionOperands& sequence, int64_t rows);

  const AttentionOperands& operands() const { return padded_; }
  // Copies the results to the sequence's own outputs.
  void TakeResults();

 private:
  at::Tensor SequenceLse() const;

  const AttentionOperands sequence_;
  const int64_t length_, rows_;
  AttentionOperands padded_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_ATTENTION_ATTENTION_GRAPH_H_
