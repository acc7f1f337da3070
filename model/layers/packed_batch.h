// A batch of sequences of different lengths, contiguous and without padding.

#ifndef TRITONRL_MODEL_LAYERS_PACKED_BATCH_H_
#define TRITONRL_MODEL_LAYERS_PACKED_BATCH_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace tritonrl {

// T tokens in n sequences; sequence i is [offsets[i], offsets[i + 1]). No token attends to another
// sequence.
struct PackedBatch {
  at::Tensor tokens;             // [T] int64
  at::Tensor positions;          // [T] int64, 0 at the start of each sequence
  std::vector<int64_t> offsets;  // n + 1 numbers, 0 first, T last

  int64_t num_tokens() const { return offsets.empty() ? 0 : offsets.back(); }
  int64_t num_sequences() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t max_length() const;
};

// Packs token lists in the given order. Empty sequences are allowed and take no row.
PackedBatch PackSequences(absl::Span<const std::vector<int32_t>> sequences,
                          at::Device device = at::kCPU);

// Returns targets with targets[t] = the token after t in its sequence, or -1 at each sequence's
// last token and where the next token is before `first_target[i]` (index within sequence i; empty
// means 1 for all). So log_probs[t] of Transformer::Forward is the log-probability of token t + 1.
at::Tensor NextTokenTargets(const PackedBatch& batch, absl::Span<const int64_t> first_target = {});

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_LAYERS_PACKED_BATCH_H_
