#include "model/layers/packed_batch.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace tritonrl {

int64_t PackedBatch::max_length() const {
  int64_t longest = 0;
  for (int64_t i = 0; i < num_sequences(); ++i) {
    longest = std::max(longest, offsets[i + 1] - offsets[i]);
  }
  return longest;
}

PackedBatch PackSequences(absl::Span<const std::vector<int32_t>> sequences, at::Device device) {
  PackedBatch batch;
  batch.offsets = {0};
  for (const std::vector<int32_t>& sequence : sequences) {
    batch.offsets.push_back(batch.offsets.back() + static_cast<int64_t>(sequence.size()));
  }
  batch.tokens = at::empty({batch.num_tokens()}, at::kLong);
  batch.positions = at::empty({batch.num_tokens()}, at::kLong);
  int64_t* tokens = batch.tokens.data_ptr<int64_t>();
  int64_t* positions = batch.positions.data_ptr<int64_t>();
  for (const std::vector<int32_t>& sequence : sequences) {
    for (size_t t = 0; t < sequence.size(); ++t) {
      *tokens++ = sequence[t];
      *positions++ = static_cast<int64_t>(t);
    }
  }
  batch.tokens = batch.tokens.to(device);
  batch.positions = batch.positions.to(device);
  return batch;
}

at::Tensor NextTokenTargets(const PackedBatch& batch, absl::Span<const int64_t> first_target) {
  const at::Tensor tokens = batch.tokens.cpu();
  at::Tensor targets = at::empty({batch.num_tokens()}, at::kLong);
  const int64_t* from = tokens.data_ptr<int64_t>();
  int64_t* to = targets.data_ptr<int64_t>();
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    const int64_t begin = batch.offsets[i], end = batch.offsets[i + 1];
    const int64_t first = first_target.empty() ? 1 : first_target[i];
    for (int64_t t = begin; t < end; ++t) {
      to[t] = t + 1 < end && t + 1 - begin >= first ? from[t + 1] : -1;
    }
  }
  return targets.to(batch.tokens.device());
}

}  // namespace tritonrl
