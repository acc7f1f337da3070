#include "rollout/cuda/decode_plan.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <bit>

#include "rollout/cuda/paged_layout.h"

namespace tritonrl {
namespace {

constexpr int kTileWords = sizeof(DecodeTile) / sizeof(int32_t);

int64_t DivideUp(int64_t n, int64_t by) { return (n + by - 1) / by; }

}  // namespace

int64_t DecodeSplit::PartTokens(int64_t length) const {
  const auto wanted = std::bit_ceil(static_cast<uint64_t>(DivideUp(length, parts)));
  return std::clamp(static_cast<int64_t>(wanted), least, most);
}

int64_t DecodeSplit::MostParts(int64_t max_length) const {
  return std::max<int64_t>(std::min<int64_t>(parts, DivideUp(max_length, least)),
                           DivideUp(max_length, most));
}

DecodeSplit DecodeSplitFor(int rows, bool batch_invariant) {
  if (batch_invariant) return {.parts = 1, .least = 1024, .most = 1024};
  return {.parts = std::max(16 / rows, 1), .least = 128, .most = rows <= 16 ? 2048 : 4096};
}

DecodePlan::DecodePlan(int rows, int64_t max_tokens, const DecodeSplit& split)
    : rows_(rows), split_(split) {
  TORCH_CHECK(rows > 0 && max_tokens > 0, "plan of ", rows, " rows, ", max_tokens, " tokens");
  TORCH_CHECK(split.parts > 0 && split.least >= kPageTokens && split.least <= split.most,
              split.parts, " parts of ", split.least, " to ", split.most, " tokens");
  tiles_ = static_cast<int>(rows * split.MostParts(max_tokens));
}

int64_t DecodePlan::words() const { return int64_t{tiles_} * kTileWords + 1; }

int64_t DecodePlan::PartialBytes(int query_heads, int head_dim) const {
  // A row of bf16 and a logarithm in fp32 for each head.
  return int64_t{tiles_} * query_heads * (2 * head_dim + 4);
}

void DecodePlan::Fill(std::span<const int32_t> lengths, std::span<const int32_t> page_begins,
                      int32_t* to) const {
  TORCH_CHECK(lengths.size() <= rows_ && lengths.size() == page_begins.size(), lengths.size(),
              " rows in a plan of ", rows_);
  auto* const tiles = reinterpret_cast<DecodeTile*>(to);
  int tile = 0;
  int64_t settled = 0;  // tokens of the row that were there before the step
  for (int row = 0; row < rows_; ++row) {
    const bool used = row < lengths.size();
    const int64_t length = used ? lengths[row] : 0;
    const bool guess = used && row > 0 && page_begins[row] == page_begins[row - 1];
    if (!guess) settled = length - 1;
    const int64_t each = split_.PartTokens(length);
    const int64_t parts = std::max<int64_t>(DivideUp(length, each), 1);
    TORCH_CHECK(tile + parts <= tiles_, "row ", row, " of ", length, " tokens is too long");
    const int first_slot = tile;
    for (int64_t first = 0; tile < first_slot + parts; first += each, ++tile) {
      tiles[tile] = {
          .row = row,
          .first_page = used ? page_begins[row] + static_cast<int32_t>(first / kPageTokens) : 0,
          .tokens = static_cast<int32_t>(std::min(length - first, each)),
          .settled_pages =
              static_cast<int32_t>(std::max<int64_t>(settled - first, 0) / kPageTokens),
          .parts = static_cast<int32_t>(parts),
          .slot = tile,
          .first_slot = first_slot};
    }
  }
  // Blocks take them in turn: what is short fills the gaps at the end.
  std::stable_sort(tiles, tiles + tile,
                   [](const DecodeTile& a, const DecodeTile& b) { return a.tokens > b.tokens; });
  to[int64_t{tiles_} * kTileWords] = tile;
}

DecodeArrays DecodePlan::At(const int32_t* words) const {
  return {.tiles = reinterpret_cast<const DecodeTile*>(words),
          .used_tiles = words + int64_t{tiles_} * kTileWords};
}

}  // namespace tritonrl
