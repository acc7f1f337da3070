#include "model/decode.h"

#include <c10/util/Exception.h>

namespace tritonrl {

DecodeRows::DecodeRows(absl::Span<const TokenSlice> slices, const ModelConfig& config,
                       const PagedCache& cache)
    : slices(slices) {
  TORCH_CHECK(!slices.empty(), "a step without slices");
  for (size_t i = 0; i < slices.size(); ++i) {
    const TokenSlice& s = slices[i];
    const int64_t count = static_cast<int64_t>(s.tokens.size()), end = s.first + count;
    TORCH_CHECK(count > 0 && s.first >= 0 && end <= config.max_positions, "slice ", i, " is of ",
                count, " tokens from position ", s.first, " on, max_position_embeddings is ",
                config.max_positions);
    TORCH_CHECK(static_cast<int64_t>(s.pages.size()) >= PagedCache::Pages(end), "slice ", i,
                " has ", s.pages.size(), " pages for ", end, " positions");
    for (int32_t page : s.pages) {
      TORCH_CHECK(page >= 0 && page < cache.num_pages(), "slice ", i, ": page ", page,
                  " is not in the cache");
    }
    for (int64_t k = 0; k < count; ++k) {
      TORCH_CHECK(s.tokens[k] >= 0 && s.tokens[k] < config.vocab_size, "slice ", i, ": token ",
                  s.tokens[k], " is not in the vocabulary");
      tokens.push_back(s.tokens[k]);
      positions.push_back(s.first + k);
      slice.push_back(static_cast<int64_t>(i));
    }
    TORCH_CHECK(s.logit_rows >= 0 && s.logit_rows <= count, "slice ", i, ": logits of ",
                s.logit_rows, " of ", count, " tokens");
    for (int64_t row = size() - s.logit_rows; row < size(); ++row) asked.push_back(row);
  }
}

}  // namespace tritonrl
