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

// cuDNN's graphs for attention: from a shape to what can be executed.
//
// What one call of cuDNN's attention reads and writes.

namespace tritonrl {

// What a graph reads and writes; kOffsets and the numbers after it: offsets, one for each stride.
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

// What a plan depends on.
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

// The graph, before cuDNN has looked for kernels. Made for a compute capability (90: Hopper) its
// validate() needs no GPU; 0 stands for that of the current one.
AttentionPlan MakeAttentionGraph(const AttentionShape& shape, int capability = 0);

// The graph with its kernels. Throws c10::Error with cuDNN's reason if it has no way to compute
// this on the handle's GPU.
AttentionPlan BuildAttentionPlan(const AttentionShape& shape, cudnnHandle_t handle);

// d_out and d_in are undefined in a forward.
struct AttentionOperands {
  AttentionHeads in;
  at::Tensor out, lse, d_out;
  AttentionHeads d_in;

  bool backward() const { return d_out.defined(); }

  // Some rows, and of these some heads: `share` of `shares` equal ones. The log-sum-exps are [H, T]
  // of the rows here.
  AttentionOperands Part(int64_t begin, int64_t length, int64_t share, int64_t shares) const;

  // Heads and strides; the rest is the caller's.
  AttentionShape Shape() const;

  // Where each lies, by AttentionUid.
  std::unordered_map<int64_t, void*> Where() const;
};

// One sequence's operands, copied to more rows: behind its own there are zeros. A token sees no
// later one, so that no row of the sequence reads what was added, whose gradients are zero in turn:
// all sums get zeros more. So sequences of many lengths share the plans for a few.
class PaddedOperands {
 public:
  // sequence: [length, heads, D] and [H, length] log-sum-exps, in which `length` is below `rows`.
  PaddedOperands(const AttentionOperands& sequence, int64_t rows);

  const AttentionOperands& operands() const { return padded_; }
  // What was computed goes to where the sequence's results lie.
  void TakeResults();

 private:
  at::Tensor SequenceLse() const;

  const AttentionOperands sequence_;
  const int64_t length_, rows_;
  AttentionOperands padded_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_ATTENTION_ATTENTION_GRAPH_H_
