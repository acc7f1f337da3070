// cuDNN's attention graphs: builds the execution plan for a shape, and describes the operands of
// one call.

#ifndef TRITONRL_MODEL_CUDA_ATTENTION_ATTENTION_GRAPH_H_
#define TRITONRL_MODEL_CUDA_ATTENTION_ATTENTION_GRAPH_H_

#include <ATen/core/Tensor.h>
#include <cudnn.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "model/cuda/attention/cudnn_attention.h"

// Declared here alone, because its header takes half a minute to compile.
namespace cudnn_frontend::graph {
class Graph;
}

namespace tritonrl {

// Ids of a graph's tensors. The offsets have the ids from kOffsets on, one for each stride.
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

// All properties of a call on which its plan depends.
struct AttentionShape {
  bool backward = false;
  bool deterministic = false;
  // true: one sequence of exactly max_length rows, without offsets and lengths. false: `sequences`
  // sequences of at most max_length rows, each at its offset.
  bool dense = false;
  int64_t sequences = 1, max_length = 0;
  int64_t heads = 0, keys = 0, dim = 0;
  // Elements from one row to the next of q, k, v, out, d_out, d_q, d_k, d_v. The last four are used
  // only in a backward.
  std::array<int64_t, 8> strides = {};

  // clang-tidy mistakes the 0 in the compiler-generated comparison for a pointer.
  auto operator<=>(const AttentionShape&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct AttentionPlan {
  std::shared_ptr<cudnn_frontend::graph::Graph> graph;
  std::map<int64_t, int64_t> offsets;  // stride of rows -> id of the offsets for this stride
};

// Returns the graph before cuDNN chooses kernels. capability: compute capability of the GPU (90:
// Hopper), with which validate() needs no GPU; 0: that of the current GPU.
AttentionPlan MakeAttentionGraph(const AttentionShape& shape, int capability = 0);

// Returns the graph with its kernels. Throws c10::Error with cuDNN's reason if cuDNN has no kernels
// for the handle's GPU.
AttentionPlan BuildAttentionPlan(const AttentionShape& shape, cudnnHandle_t handle);

// Returns the front end's reason to reject the graph, or "". It needs no GPU if the graph was made
// for a compute capability.
std::string RefusalOf(const AttentionPlan& plan);

// Memory in bytes that one execution needs beside its operands.
int64_t WorkspaceBytes(const AttentionPlan& plan);

// Queues the call on the handle's stream; `places` has the address of each operand by
// AttentionUid. Throws c10::Error with cuDNN's reason.
void Execute(const AttentionPlan& plan, cudnnHandle_t handle,
             std::unordered_map<int64_t, void*>* places, void* workspace);

// The operands of one call. d_out and d_in are undefined in a forward.
struct AttentionOperands {
  AttentionHeads in;
  at::Tensor out, lse, d_out;
  AttentionHeads d_in;

  bool backward() const { return d_out.defined(); }

  // Returns rows [begin, begin + length) of one group of heads: number `share` of `shares` groups
  // of equal size. lse is [H, T] here.
  AttentionOperands Part(int64_t begin, int64_t length, int64_t share, int64_t shares) const;

  // Returns a shape with heads and strides set; the caller sets the other fields.
  AttentionShape Shape() const;

  // Returns the addresses of the operands by AttentionUid.
  std::unordered_map<int64_t, void*> Where() const;
};

// A copy of one sequence's operands, padded with rows of zeros, so that sequences of many lengths
// share the plans of a few lengths. Attention is causal: no row of the sequence reads the padding,
// and the padding's gradients are zero.
class PaddedOperands {
 public:
  // Copies `sequence` ([length, heads, D], log-sum-exps [H, length]) to `rows` rows, more than
  // `length`.
  PaddedOperands(const AttentionOperands& sequence, int64_t rows);

  const AttentionOperands& operands() const { return padded_; }
  // Copies the results to the outputs of `sequence`.
  void TakeResults();

 private:
  at::Tensor SequenceLse() const;

  const AttentionOperands sequence_;
  const int64_t length_, rows_;
  AttentionOperands padded_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_ATTENTION_ATTENTION_GRAPH_H_
