// Groups the sequences of a packed batch into calls of cuDNN's attention. Does not depend on cuDNN.

#ifndef TRITONRL_MODEL_CUDA_ATTENTION_PACKED_LENGTHS_H_
#define TRITONRL_MODEL_CUDA_ATTENTION_PACKED_LENGTHS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace tritonrl {

// Sequences of similar lengths, which share one call. cuDNN's temporary memory grows with sequences
// times max_length, so a long sequence must not share a call with many short ones: within a bucket
// no sequence is shorter than half of the longest, except sequences of at most 128 tokens.
class AttentionBucket {
 public:
  std::vector<int64_t> sequences;  // numbers in the batch, in ascending order
  int64_t max_length = 0;          // longest length, rounded up so that batches share plans
  // int32 on the device. Empty sequences pad n to a power of two, again so that batches share
  // plans.
  at::Tensor offsets;  // [n + 1] first row of each sequence, then the row after the last sequence
  at::Tensor lengths;  // [n]

  int64_t count() const { return lengths.size(0); }
  // Returns the offsets in elements for rows of `stride` elements. The first call for a stride
  // computes them; all layers use them. Not thread-safe.
  const at::Tensor& OffsetsFor(int64_t stride) const;

  // Whether the bucket's only sequence gets a call for its exact length. The first call decides,
  // because forward and backward must do the same. Not thread-safe.
  mutable std::optional<bool> exact;

 private:
  mutable std::map<int64_t, at::Tensor> scaled_;
};

// The sequence lengths and the buckets of a batch, computed once per batch.
struct PackedLengths {
  std::vector<int64_t> offsets;  // first row of each sequence, then T
  std::vector<AttentionBucket> buckets;

  int64_t begin(int64_t sequence) const { return offsets[sequence]; }
  int64_t length(int64_t sequence) const { return offsets[sequence + 1] - offsets[sequence]; }
};

// Groups the sequences of a batch. offsets: as in PackedLengths, with T below 2^31. Empty sequences
// are in no bucket.
PackedLengths PackLengths(const std::vector<int64_t>& offsets, at::Device device);

// Returns the number of rows to which a sequence of `length` is padded for its own call: a multiple
// of 128, and above 2,048 a multiple of a sixteenth of the next power of two.
int64_t PaddedLength(int64_t length);

// Returns the number of calls for the deterministic backward of one sequence, a divisor of the key
// heads; each call handles an equal share of the heads. cuDNN's fixed order of sums needs 2 * query
// heads * length^2 bytes of temporary memory, and the result is the smallest number of calls that
// need at most 2 GiB each, or the number of key heads if there is none.
int64_t DeterministicBackwardCalls(int64_t query_heads, int64_t key_heads, int64_t length);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_ATTENTION_PACKED_LENGTHS_H_
