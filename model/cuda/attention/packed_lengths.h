// How the sequences of a packed batch are grouped into calls of cuDNN's attention. Free of cuDNN.

#ifndef TRITONRL_MODEL_CUDA_ATTENTION_PACKED_LENGTHS_H_
#define TRITONRL_MODEL_CUDA_ATTENTION_PACKED_LENGTHS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace tritonrl {

// Sequences of similar lengths. cuDNN's temporary memory grows with sequences times max_length, so
// that a long sequence must not share a call with many short ones: within a bucket no sequence is
// shorter than half of the longest, except those of at most 128 tokens.
class AttentionBucket {
 public:
  std::vector<int64_t> sequences;  // of the batch, rising
  int64_t max_length = 0;          // of any of them, rounded up so that batches share plans
  // Padded with empty sequences to a power of two, for the same reason; int32 on the device.
  at::Tensor offsets;  // [n + 1] the first row of each; last the row after the last sequence
  at::Tensor lengths;  // [n]

  int64_t count() const { return lengths.size(0); }
  // Offsets in elements where a row has `stride` of them: made at the first call for a stride, used
  // by all layers. Not for several threads at a time.
  const at::Tensor& OffsetsFor(int64_t stride) const;

  // Whether its only sequence gets a call for its exact length: decided at the first call, since
  // forward and backward must do the same. Not for several threads at a time either.
  mutable std::optional<bool> exact;

 private:
  mutable std::map<int64_t, at::Tensor> scaled_;
};

// Made once for a batch.
struct PackedLengths {
  std::vector<int64_t> offsets;  // the first row of each sequence; last T
  std::vector<AttentionBucket> buckets;

  int64_t begin(int64_t sequence) const { return offsets[sequence]; }
  int64_t length(int64_t sequence) const { return offsets[sequence + 1] - offsets[sequence]; }
};

// `offsets`: first row of each sequence, then T; T below 2^31. Empty sequences are in no bucket.
PackedLengths PackLengths(const std::vector<int64_t>& offsets, at::Device device);

// Rows to which a sequence of `length` is padded for its own call: a multiple of 128, above 2,048
// of a sixteenth of the next power of two.
int64_t PaddedLength(int64_t length);

// Calls into which the backward of one sequence is divided, each with a share of the heads (a
// divisor of the key heads), where cuDNN's fixed order of sums needs 2 * query heads * length^2
// bytes of temporary memory: the fewest for which that is at most 2 GiB.
int64_t DeterministicBackwardCalls(int64_t query_heads, int64_t key_heads, int64_t length);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_ATTENTION_PACKED_LENGTHS_H_
