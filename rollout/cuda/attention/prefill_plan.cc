#include "rollout/cuda/attention/prefill_plan.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace tritonrl {
namespace {

constexpr int kShortTile = 64;    // query rows times query heads per key head
constexpr int kLongTile = 128;    // the same unit, FA2
constexpr int kHopperTile = 128;  // query rows of one head, FA3

int64_t Append(const std::vector<int32_t>& values, std::vector<int32_t>* words) {
  const int64_t begin = static_cast<int64_t>(words->size());
  words->insert(words->end(), values.begin(), values.end());
  return begin;
}

template <typename Function>
int64_t AppendEach(const std::vector<PrefillChunk>& chunks, Function of,
                   std::vector<int32_t>* words) {
  const int64_t begin = static_cast<int64_t>(words->size());
  for (const PrefillChunk& chunk : chunks) words->push_back(of(chunk));
  return begin;
}

Fa2Chunks PlanFa2(const std::vector<PrefillChunk>& chunks, int group, int tile, int32_t table_size,
                  std::vector<int32_t>* words) {
  Fa2Chunks plan;
  plan.chunks = static_cast<int>(chunks.size());
  if (chunks.empty()) return plan;
  std::vector<int32_t> requests, query_tiles;
  int32_t longest = 1;
  for (int i = 0; i < plan.chunks; ++i) {
    // The last tiles have the most keys: they come first, so that the launch does not end with one.
    for (int t = (chunks[i].rows * group + tile - 1) / tile - 1; t >= 0; --t) {
      requests.push_back(i);
      query_tiles.push_back(t);
    }
    longest = std::max(longest, chunks[i].length);
    plan.max_rows = std::max<int64_t>(plan.max_rows, chunks[i].rows);
  }
  plan.tiles = static_cast<int>(requests.size());
  plan.first_rows = AppendEach(
      chunks, [](const PrefillChunk& c) { return c.first_row; }, words);
  plan.rows = AppendEach(
      chunks, [](const PrefillChunk& c) { return c.rows; }, words);
  plan.lengths = AppendEach(
      chunks, [](const PrefillChunk& c) { return c.length; }, words);
  plan.page_begins = AppendEach(
      chunks, [](const PrefillChunk& c) { return c.page_begin; }, words);
  words->push_back(table_size);
  plan.requests = Append(requests, words);
  plan.query_tiles = Append(query_tiles, words);
  plan.key_tiles = Append(std::vector<int32_t>(plan.tiles), words);
  plan.tile_tokens = Append({longest}, words);
  return plan;
}

struct Piece {
  int32_t chunk, query_tile, head;
};

// Assigns each piece to the block with the least work so far, the longest pieces of a head first.
// Heads follow one after another, so that all blocks read the same keys at the same time.
std::vector<std::vector<Piece>> Share(const std::vector<PrefillChunk>& chunks, int heads,
                                      int blocks) {
  std::vector<std::pair<int64_t, Piece>> pieces;  // of one head, each with its cost
  for (int i = 0; i < static_cast<int>(chunks.size()); ++i) {
    const PrefillChunk& chunk = chunks[i];
    for (int t = 0; t * kHopperTile < chunk.rows; ++t) {
      const int64_t keys =
          std::min(chunk.length, chunk.length - chunk.rows + (t + 1) * kHopperTile);
      // 2 * kHopperTile is the cost of a piece's beginning and end.
      pieces.push_back({keys + 2 * kHopperTile, {i, t, 0}});
    }
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::vector<Piece>> shares(blocks);
  using Load = std::pair<int64_t, int>;  // work, block
  std::priority_queue<Load, std::vector<Load>, std::greater<Load>> loads;
  for (int block = 0; block < blocks; ++block) loads.push({0, block});
  for (int head = 0; head < heads; ++head) {
    for (auto& [cost, piece] : pieces) {
      auto [load, block] = loads.top();
      loads.pop();
      shares[block].push_back({piece.chunk, piece.query_tile, head});
      loads.push({load + cost, block});
    }
  }
  return shares;
}

Fa3Chunks PlanFa3(const std::vector<PrefillChunk>& chunks, int heads, int blocks,
                  std::vector<int32_t>* words) {
  Fa3Chunks plan;
  if (chunks.empty()) return plan;
  const std::vector<std::vector<Piece>> shares = Share(chunks, heads, blocks);
  std::vector<int32_t> begins = {0};
  std::vector<Piece> pieces;
  for (const std::vector<Piece>& share : shares) {
    pieces.insert(pieces.end(), share.begin(), share.end());
    begins.push_back(static_cast<int32_t>(pieces.size()));
  }
  plan.pieces = static_cast<int>(pieces.size());
  plan.begins = Append(begins, words);
  const auto append = [&](auto of) {
    const int64_t begin = static_cast<int64_t>(words->size());
    for (const Piece& piece : pieces) words->push_back(of(piece, chunks[piece.chunk]));
    return begin;
  };
  plan.query_tiles = append([](const Piece& p, const PrefillChunk&) { return p.query_tile; });
  plan.first_rows = append([](const Piece&, const PrefillChunk& c) { return c.first_row; });
  plan.page_begins = append([](const Piece&, const PrefillChunk& c) { return c.page_begin; });
  plan.rows = append([](const Piece&, const PrefillChunk& c) { return c.rows; });
  plan.lengths = append([](const Piece&, const PrefillChunk& c) { return c.length; });
  plan.heads = append([](const Piece& p, const PrefillChunk&) { return p.head; });
  plan.requests = append([](const Piece& p, const PrefillChunk&) { return p.chunk; });
  return plan;
}

}  // namespace

PrefillPlan PlanPrefill(const CacheHeads& shape, const PrefillDevice& device,
                        std::span<const PrefillChunk> chunks, int32_t table_size,
                        bool batch_invariant) {
  const int group = shape.query_heads / shape.key_heads;
  std::vector<PrefillChunk> of_short, of_long;
  for (const PrefillChunk& chunk : chunks) {
    TORCH_CHECK(chunk.rows >= 0 && chunk.rows <= chunk.length, "chunk of ", chunk.rows, " rows of ",
                chunk.length, " positions");
    const bool is_short = chunk.rows < kLongChunk && !batch_invariant;
    if (chunk.rows > 0) (is_short ? of_short : of_long).push_back(chunk);
  }
  PrefillPlan plan;
  plan.short_chunks = PlanFa2(of_short, group, kShortTile, table_size, &plan.words);
  if (device.hopper && shape.head_dim == 128 && shape.type == CacheType::kBFloat16 &&
      !batch_invariant) {
    plan.hopper_chunks = PlanFa3(of_long, shape.query_heads, device.multiprocessors, &plan.words);
  } else {
    plan.long_chunks = PlanFa2(of_long, group, kLongTile, table_size, &plan.words);
  }
  return plan;
}

}  // namespace tritonrl
