// What one call of cuDNN's attention reads and writes.
#ifndef TRITONRL_MODEL_CUDA_ATTENTION_OPERANDS_H_
#define TRITONRL_MODEL_CUDA_ATTENTION_OPERANDS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <unordered_map>

#include "model/cuda/attention.h"
#include "model/cuda/attention_plan.h"

namespace tritonrl {

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

#endif  // TRITONRL_MODEL_CUDA_ATTENTION_OPERANDS_H_
