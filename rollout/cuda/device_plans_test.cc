// Tables that the kernels read, as plain C++ fills them.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "rollout/cuda/chunk_plan.h"
#include "rollout/cuda/decode_plan.h"
#include "rollout/cuda/paged_layout.h"

namespace tritonrl {
namespace {

TEST(PagedLayoutTest, SlotsOfPages) {
  EXPECT_EQ(PageSlot(3, 35), 3 * 16 + 3);
  EXPECT_EQ(PagesFor(0), 0);
  EXPECT_EQ(PagesFor(16), 1);
  EXPECT_EQ(PagesFor(17), 2);
  EXPECT_EQ((CacheHeads{32, 8, 128}.PageBytes()), 32768);
}

TEST(DecodePlanTest, WithoutASplitEachRowIsATile) {
  const DecodePlan plan(4, 5000, 0);
  EXPECT_EQ(plan.tiles(), 4);
  EXPECT_EQ(plan.PartialBytes(32, 128), 0);
  std::vector<int32_t> words(plan.words(), -7);
  plan.Fill(std::vector<int32_t>{5, 5000}, std::vector<int32_t>{400, 0}, 800, words.data());
  const DecodeArrays at = plan.At(words.data());
  EXPECT_EQ(std::vector<int32_t>(at.lengths, at.lengths + 4),
            (std::vector<int32_t>{5, 5000, 0, 0}));
  EXPECT_EQ(std::vector<int32_t>(at.page_begins, at.page_begins + 5),
            (std::vector<int32_t>{400, 0, 0, 0, 800}));
  EXPECT_EQ(std::vector<int32_t>(at.row_ids, at.row_ids + 5),
            (std::vector<int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(std::vector<int32_t>(at.requests, at.requests + 4), (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(*at.tile_tokens, 5000);
  EXPECT_EQ(at.part_begins, nullptr);
}

TEST(DecodePlanTest, PartsOfASplitCoverEachRowOnce) {
  const std::vector<int32_t> lengths = {0, 1, 1023, 1024, 1025, 4096, 3000};
  const DecodePlan plan(9, 4096, 1024);
  std::vector<int32_t> words(plan.words(), -7);
  plan.Fill(lengths, std::vector<int32_t>(7, 0), 256, words.data());
  const DecodeArrays at = plan.At(words.data());
  std::vector<int> parts(9);
  int tile = 0;
  for (; tile < at.part_begins[9]; ++tile) {
    const int row = at.requests[tile];
    EXPECT_EQ(at.part_begins[row] + at.key_tiles[tile], tile);
    EXPECT_EQ(at.key_tiles[tile], parts[row]++);
    EXPECT_EQ(at.query_tiles[tile], 0);
  }
  EXPECT_EQ(parts, (std::vector<int>{0, 1, 1, 1, 2, 4, 3, 0, 0}));
  EXPECT_LT(tile, plan.tiles());
}

TEST(DecodePlanTest, PlacesDoNotDependOnLengths) {
  const DecodePlan plan(2, 100000, 2048);
  std::vector<int32_t> words(plan.words());
  const DecodeArrays before = plan.At(words.data());
  plan.Fill(std::vector<int32_t>{100000, 100000}, std::vector<int32_t>{0, 6250}, 12500,
            words.data());
  EXPECT_EQ(before.part_begins, plan.At(words.data()).part_begins);
  EXPECT_EQ(before.part_begins[2], plan.tiles());
  // Two parts' results and logarithms of 8 heads for each tile of 2,048 tokens.
  EXPECT_EQ(plan.PartialBytes(8, 64), 2 * 49 * 8 * (64 * 2 + 4));
}

// Query rows times heads that the tiles of a plan compute, by chunk.
std::map<int, int> TileCounts(const std::vector<int32_t>& words, const Fa2Chunks& chunks) {
  std::map<int, int> counts;
  for (int t = 0; t < chunks.tiles; ++t) ++counts[words[chunks.requests + t]];
  return counts;
}

TEST(ChunkPlanTest, ShortAndLongChunksAreApart) {
  const std::vector<Chunk> chunks = {
      {0, 1, 500, 0}, {1, 127, 127, 32}, {128, 128, 200, 64}, {256, 0, 0, 96}, {256, 300, 300, 96}};
  const ChunkPlan plan = PlanChunks({32, 8, 64}, {true, 132}, chunks, 1000);
  EXPECT_EQ(plan.hopper_chunks.pieces, 0);  // heads of 64
  ASSERT_EQ(plan.short_chunks.chunks, 2);
  ASSERT_EQ(plan.long_chunks.chunks, 2);
  EXPECT_EQ(TileCounts(plan.words, plan.short_chunks), (std::map<int, int>{{0, 1}, {1, 8}}));
  EXPECT_EQ(TileCounts(plan.words, plan.long_chunks), (std::map<int, int>{{0, 4}, {1, 10}}));
  const int32_t* words = plan.words.data();
  EXPECT_EQ(words[plan.long_chunks.first_rows + 1], 256);
  EXPECT_EQ(words[plan.long_chunks.rows], 128);
  EXPECT_EQ(words[plan.long_chunks.lengths], 200);
  EXPECT_EQ(words[plan.long_chunks.page_begins], 64);
  EXPECT_EQ(words[plan.long_chunks.page_begins + 2], 1000);
  EXPECT_EQ(words[plan.long_chunks.query_tiles], 3);
}

TEST(DecodePlanTest, TheSplitOfABatchInvariantPlanIsThatOfAnyNumberOfRows) {
  EXPECT_NE(DecodeSplitTokens(32, false), DecodeSplitTokens(33, false));
  for (const int rows : {1, 32, 33, 256, 2048}) {
    EXPECT_EQ(DecodeSplitTokens(rows, true), DecodeSplitTokens(1, true)) << rows;
  }
}

TEST(ChunkPlanTest, BatchInvariantChunksAreAllComputedAlike) {
  const std::vector<Chunk> chunks = {{0, 1, 500, 0}, {1, 127, 127, 32}, {128, 300, 428, 64}};
  for (const int dim : {64, 128}) {
    const ChunkPlan plan = PlanChunks({32, 8, dim}, {true, 132}, chunks, 1000, true);
    EXPECT_EQ(plan.short_chunks.chunks, 0);
    EXPECT_EQ(plan.hopper_chunks.pieces, 0);
    EXPECT_EQ(plan.long_chunks.chunks, 3);
    EXPECT_EQ(TileCounts(plan.words, plan.long_chunks),
              (std::map<int, int>{{0, 1}, {1, 4}, {2, 10}}));
  }
}

TEST(ChunkPlanTest, HopperPiecesAreSharedOutOnceAndEvenly) {
  const std::vector<Chunk> chunks = {{0, 2048, 16384, 0}, {2048, 200, 200, 1024}};
  const int blocks = 132, heads = 32;
  const ChunkPlan plan = PlanChunks({heads, 8, 128}, {true, blocks}, chunks, 2000);
  EXPECT_EQ(plan.long_chunks.chunks, 0);
  const Fa3Chunks& at = plan.hopper_chunks;
  ASSERT_EQ(at.pieces, heads * (16 + 2));
  const int32_t* words = plan.words.data();
  ASSERT_EQ(words[at.begins], 0);
  ASSERT_EQ(words[at.begins + blocks], at.pieces);
  std::map<std::vector<int32_t>, int> seen;
  std::vector<int64_t> loads;
  for (int block = 0; block < blocks; ++block) {
    loads.push_back(0);
    for (int i = words[at.begins + block]; i < words[at.begins + block + 1]; ++i) {
      const Chunk& chunk = chunks[words[at.requests + i]];
      const int32_t tile = words[at.query_tiles + i];
      ++seen[{words[at.requests + i], tile, words[at.heads + i]}];
      EXPECT_EQ(words[at.first_rows + i], chunk.first_row);
      EXPECT_EQ(words[at.rows + i], chunk.rows);
      EXPECT_EQ(words[at.lengths + i], chunk.length);
      EXPECT_EQ(words[at.page_begins + i], chunk.page_begin);
      EXPECT_LT(tile * 128, chunk.rows);
      loads.back() += chunk.length - chunk.rows + (tile + 1) * 128;
    }
  }
  EXPECT_EQ(seen.size(), at.pieces);
  const double mean = std::accumulate(loads.begin(), loads.end(), 0.0) / blocks;
  EXPECT_LT(*std::max_element(loads.begin(), loads.end()), 1.2 * mean);
}

}  // namespace
}  // namespace tritonrl
