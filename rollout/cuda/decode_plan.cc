#include "rollout/cuda/decode_plan.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <numeric>

namespace tritonrl {
namespace {

constexpr int kUnsplitRows = 33;
constexpr int kInvariantTokens = 1024;

// Where each array begins, in words.
struct Offsets {
  int64_t lengths, page_begins, row_ids, requests, query_tiles, key_tiles, tile_tokens, part_begins,
      end;

  Offsets(int64_t rows, int64_t tiles, bool splits) {
    int64_t at = 0;
    const auto take = [&at](int64_t words) {
      const int64_t begin = at;
      at += words;
      return begin;
    };
    lengths = take(rows);
    page_begins = take(rows + 1);
    row_ids = take(rows + 1);
    requests = take(tiles);
    query_tiles = take(tiles);
    key_tiles = take(tiles);
    tile_tokens = take(1);
    part_begins = take(splits ? rows + 1 : 0);
    end = at;
  }
};

}  // namespace

int DecodeSplitTokens(int rows, bool batch_invariant) {
  if (batch_invariant) return kInvariantTokens;
  if (rows >= kUnsplitRows) return 0;
  return rows == 1 ? 128 : rows == 2 ? 256 : (rows <= 8 ? 512 : (rows <= 16 ? 1024 : 2048));
}

DecodePlan::DecodePlan(int rows, int64_t max_tokens, int split_tokens)
    : rows_(rows), splits_(split_tokens > 0) {
  TORCH_CHECK(rows > 0 && max_tokens > 0 && split_tokens >= 0, "plan of ", rows, " rows, ",
              max_tokens, " tokens, split ", split_tokens);
  tile_tokens_ = splits_ ? split_tokens : static_cast<int>(max_tokens);
  const int64_t parts = (max_tokens + tile_tokens_ - 1) / tile_tokens_;
  tiles_ = static_cast<int>(rows * parts);
  words_ = Offsets(rows_, tiles_, splits_).end;
}

int64_t DecodePlan::PartialBytes(int query_heads, int head_dim) const {
  // A row of bf16 and a logarithm in fp32 for each head.
  return splits_ ? int64_t{tiles_} * query_heads * (2 * head_dim + 4) : 0;
}

void DecodePlan::Fill(std::span<const int32_t> lengths, std::span<const int32_t> page_begins,
                      int32_t table_size, int32_t* to) const {
  TORCH_CHECK(lengths.size() <= rows_ && lengths.size() == page_begins.size(), lengths.size(),
              " rows in a plan of ", rows_);
  const Offsets at(rows_, tiles_, splits_);
  std::fill_n(to, words_, 0);
  std::copy(lengths.begin(), lengths.end(), to + at.lengths);
  std::copy(page_begins.begin(), page_begins.end(), to + at.page_begins);
  to[at.page_begins + rows_] = table_size;
  std::iota(to + at.row_ids, to + at.row_ids + rows_ + 1, 0);
  to[at.tile_tokens] = tile_tokens_;
  if (!splits_) {
    std::iota(to + at.requests, to + at.requests + tiles_, 0);
    return;
  }
  int tile = 0;
  for (int row = 0; row < rows_; ++row) {
    to[at.part_begins + row] = tile;
    const int64_t length = row < lengths.size() ? lengths[row] : 0;
    const int64_t parts = (length + tile_tokens_ - 1) / tile_tokens_;
    TORCH_CHECK(tile + parts <= tiles_, "row ", row, " of ", length, " tokens is too long");
    for (int part = 0; part < parts; ++part, ++tile) {
      to[at.requests + tile] = row;
      to[at.key_tiles + tile] = part;
    }
  }
  to[at.part_begins + rows_] = tile;
}

DecodeArrays DecodePlan::At(const int32_t* words) const {
  const Offsets at(rows_, tiles_, splits_);
  return {.lengths = words + at.lengths,
          .page_begins = words + at.page_begins,
          .row_ids = words + at.row_ids,
          .requests = words + at.requests,
          .query_tiles = words + at.query_tiles,
          .key_tiles = words + at.key_tiles,
          .tile_tokens = words + at.tile_tokens,
          .part_begins = splits_ ? words + at.part_begins : nullptr};
}

}  // namespace tritonrl
