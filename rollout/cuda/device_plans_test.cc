// The tables that the attention kernels read; plain C++ that needs no GPU.

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "rollout/cuda/attention/decode_plan.h"
#include "rollout/cuda/attention/paged_kv_layout.h"
#include "rollout/cuda/attention/prefill_plan.h"

namespace tritonrl {
namespace {

TEST(PagedLayoutTest, SlotsOfPages) {
  EXPECT_EQ(PageSlot(3, 35), 3 * 16 + 3);
  EXPECT_EQ(PagesFor(0), 0);
  EXPECT_EQ(PagesFor(16), 1);
  EXPECT_EQ(PagesFor(17), 2);
  EXPECT_EQ((CacheHeads{32, 8, 128}.PageBytes()), 32768);
}

// Words of a filled plan, at a multiple of 16 bytes.
struct Filled {
  std::vector<DecodeTile> memory;

  Filled(const DecodePlan& plan, const std::vector<int32_t>& lengths,
         const std::vector<int32_t>& page_begins, const std::vector<int32_t>& shared_pages = {})
      : memory(plan.words() / (sizeof(DecodeTile) / sizeof(int32_t)) + 1) {
    plan.Fill(lengths, page_begins, shared_pages, words());
  }
  int32_t* words() { return reinterpret_cast<int32_t*>(memory.data()); }
};

TEST(DecodePlanTest, WithoutASplitEachRowIsATile) {
  const DecodePlan plan(4, 5000, DecodeSplit());
  EXPECT_EQ(plan.tiles(), 4);
  Filled filled(plan, {5, 5000}, {400, 0});
  const DecodeArrays at = plan.At(filled.words());
  EXPECT_EQ(*at.used_tiles, 4);
  const auto expect = [&](int tile, int row, int first_page, int tokens, int settled) {
    EXPECT_EQ(at.tiles[tile].row, row);
    EXPECT_EQ(at.tiles[tile].first_page, first_page);
    EXPECT_EQ(at.tiles[tile].tokens, tokens);
    EXPECT_EQ(at.tiles[tile].settled_pages, settled);
    EXPECT_EQ(at.rows[row].parts, 1);
  };
  expect(0, 1, 0, 5000, 312);  // the longest first
  expect(1, 0, 400, 5, 0);
  expect(2, 2, 0, 0, 0);
  expect(3, 3, 0, 0, 0);
}

TEST(DecodePlanTest, PartsDependOnARowsOwnLength) {
  const DecodeSplit split = {.parts = 8, .least = 128, .most = 2048};
  EXPECT_EQ(split.PartTokens(0, 1), 128);
  EXPECT_EQ(split.PartTokens(1024, 30), 128);
  EXPECT_EQ(split.PartTokens(1025, 1), 256);
  EXPECT_EQ(split.PartTokens(9000, 2), 2048);
  EXPECT_EQ(split.PartTokens(100000, 1), 2048);
  for (const int64_t longest : {1, 128, 129, 1000, 1025, 20000}) {
    int64_t most = 0;
    for (int64_t length = 1; length <= longest; ++length) {
      const int64_t each = split.PartTokens(length, 3);
      most = std::max(most, (length + each - 1) / each);
    }
    EXPECT_LE(most, split.MaxParts(longest, 3)) << longest;
    EXPECT_GE(2 * most, split.MaxParts(longest, 3)) << longest;
  }
}

TEST(DecodePlanTest, PartsOfASplitCoverEachRowOnce) {
  const std::vector<int32_t> lengths = {0, 1, 1023, 1024, 1025, 4096, 3000};
  const std::vector<int32_t> begins = {0, 300, 600, 900, 1200, 1500, 1800};
  const DecodePlan plan(9, 4096, {.parts = 1, .least = 1024, .most = 1024});
  Filled filled(plan, lengths, begins);
  const DecodeArrays at = plan.At(filled.words());
  std::vector<int> parts(9), tokens(9), settled(9);
  std::set<int> slots;
  EXPECT_LT(*at.used_tiles, plan.tiles());
  for (int i = 0; i < *at.used_tiles; ++i) {
    const DecodeTile& tile = at.tiles[i];
    if (i > 0) {
      EXPECT_LE(tile.tokens, at.tiles[i - 1].tokens);
    }
    const DecodeRow& row = at.rows[tile.row];
    EXPECT_EQ(tile.rows, 1);
    EXPECT_TRUE(slots.insert(row.first_slot + tile.part).second);
    EXPECT_LT(row.first_slot + tile.part, plan.tiles());
    EXPECT_LT(tile.part, row.parts);
    EXPECT_EQ(tile.first_page, (tile.row < 7 ? begins[tile.row] : 0) + 64 * tile.part);
    ++parts[tile.row];
    tokens[tile.row] += tile.tokens;
    settled[tile.row] += std::min<int>(tile.settled_pages, PagesFor(tile.tokens));
  }
  EXPECT_EQ(parts, (std::vector<int>{1, 1, 1, 1, 2, 4, 3, 1, 1}));
  EXPECT_EQ(tokens, (std::vector<int>{0, 1, 1023, 1024, 1025, 4096, 3000, 0, 0}));
  // All pages before that of the last token.
  EXPECT_EQ(settled, (std::vector<int>{0, 0, 63, 63, 64, 255, 187, 0, 0}));
}

TEST(DecodePlanTest, DraftTokensSeeWhatTheStepWritesBeforeThem) {
  const DecodePlan plan(5, 4096, DecodeSplit());
  // Three rows of a sequence, the first at position 30, and one row of another sequence.
  Filled filled(plan, {31, 32, 33, 50}, {64, 64, 64, 128});
  const DecodeArrays at = plan.At(filled.words());
  std::vector<int> settled(5);
  for (int i = 0; i < *at.used_tiles; ++i) settled[at.tiles[i].row] = at.tiles[i].settled_pages;
  // The third row has one settled page, not two: the step writes positions 30 and 31.
  EXPECT_EQ(settled, (std::vector<int>{1, 1, 1, 3, 0}));
}

// Checks that the tiles give each row each of its tokens once, and each part its own slot.
void CheckCovers(const DecodePlan& plan, const DecodeArrays& at,
                 const std::vector<int32_t>& lengths, const std::vector<int32_t>& begins) {
  std::vector<int> tokens(plan.rows()), parts(plan.rows());
  std::vector<std::set<int>> pages(plan.rows());
  std::set<int> slots;
  const std::set<int32_t> all_begins(begins.begin(), begins.end());
  for (int i = 0; i < *at.used_tiles; ++i) {
    const DecodeTile& tile = at.tiles[i];
    // The index of the tile's first page in the row itself, or in a row with the same pages.
    const int page = tile.first_page - *std::prev(all_begins.upper_bound(tile.first_page));
    EXPECT_EQ(tile.part == 0, page == 0);
    ASSERT_GE(tile.rows, 1);
    for (int k = 0; k < tile.rows; ++k) {
      const int row = tile.row + k;
      EXPECT_TRUE(slots.insert(at.rows[row].first_slot + tile.part).second);
      EXPECT_LT(at.rows[row].first_slot + tile.part, plan.tiles());
      const int seen = tile.tokens - (tile.rows - 1 - k) * tile.fewer;
      EXPECT_TRUE(seen > 0 || lengths[row] == 0);
      // The tiles are in any order, so only totals and distinct first pages are checked.
      tokens[row] += seen;
      ++parts[row];
      pages[row].insert(page);
    }
  }
  for (int row = 0; row < plan.rows(); ++row) {
    EXPECT_EQ(tokens[row], row < lengths.size() ? lengths[row] : 0) << row;
    EXPECT_EQ(parts[row], at.rows[row].parts) << row;
    EXPECT_EQ(pages[row].size(), at.rows[row].parts) << row << ": parts begin at other pages";
  }
}

TEST(DecodePlanTest, RowsOfASequenceAreReadTogether) {
  const std::vector<int32_t> lengths = {31, 32, 33, 50, 126, 127, 128, 129, 130, 131, 132, 133};
  std::vector<int32_t> begins = {64, 64, 64, 128};
  begins.resize(lengths.size(), 256);
  const DecodePlan plan(13, 4096, {.parts = 1, .least = 64, .most = 64}, {6});
  Filled filled(plan, lengths, begins);
  const DecodeArrays at = plan.At(filled.words());
  std::vector<int> rows(13), settled(13);
  for (int i = 0; i < *at.used_tiles; ++i) {
    const DecodeTile& tile = at.tiles[i];
    rows[tile.row] = tile.rows;
    settled[tile.row] += std::min<int>(tile.settled_pages, PagesFor(tile.tokens));
    EXPECT_EQ(tile.fewer, tile.rows > 1 && tile.part == at.rows[tile.row].parts - 1 ? 1 : 0);
  }
  // Of the last sequence's eight rows the first three have two parts, the others three.
  EXPECT_EQ(rows, (std::vector<int>{3, 0, 0, 1, 3, 0, 0, 5, 0, 0, 0, 0, 1}));
  EXPECT_EQ(settled, (std::vector<int>{1, 0, 0, 3, 7, 0, 0, 7, 0, 0, 0, 0, 0}));
  std::vector<int32_t> all = lengths, all_begins = begins;
  all.push_back(0);
  all_begins.push_back(0);
  CheckCovers(plan, at, all, all_begins);
}

TEST(DecodePlanTest, RowsThatAreReadTogetherCountOnceForTheSplit) {
  const DecodeSplit split = DecodeSplitFor(9, false);
  std::vector<int32_t> lengths(9), begins(9, 64), apart(9);
  for (int i = 0; i < 9; ++i) {
    lengths[i] = 3000 + i;
    apart[i] = 1000 * i;
  }
  const DecodePlan plan(9, 40000, split, {6});
  Filled together(plan, lengths, begins);
  EXPECT_EQ(plan.At(together.words()).rows[0].parts, 6) << "of 512 tokens: two groups of rows";
  EXPECT_EQ(*plan.At(together.words()).used_tiles, 12);
  CheckCovers(plan, plan.At(together.words()), lengths, begins);
  Filled others(plan, lengths, apart);
  EXPECT_EQ(plan.At(others.words()).rows[0].parts, 2) << "of 2,048 tokens: nine";
  CheckCovers(plan, plan.At(others.words()), lengths, apart);
}

TEST(DecodePlanTest, PromptsAreReadOnceForTheirSamples) {
  // Two groups of samples, one of them with draft tokens, and a sample without a group.
  const std::vector<int32_t> lengths = {1100, 1030, 1031, 1032, 2000, 900, 300, 301, 305};
  const std::vector<int32_t> begins = {0, 200, 200, 200, 400, 600, 800, 1000, 1200};
  const std::vector<int32_t> shared = {0, 64, 64, 64, 64, 0, 3, 18, 18};
  const DecodePlan plan(9, 4096, {.parts = 1, .least = 512, .most = 512}, {6, 1, 16});
  Filled filled(plan, lengths, begins, shared);
  const DecodeArrays at = plan.At(filled.words());
  CheckCovers(plan, at, lengths, begins);
  std::map<std::pair<int, int>, int> tiles;  // number of tiles by (first row, rows)
  for (int i = 0; i < *at.used_tiles; ++i) {
    const DecodeTile& tile = at.tiles[i];
    ++tiles[{tile.row, tile.rows}];
    if (tile.row == 0 && tile.rows == 5) {
      EXPECT_EQ(tile.tokens, 512);
      EXPECT_EQ(tile.settled_pages, 32);
      EXPECT_EQ(tile.fewer, 0);
    }
  }
  EXPECT_EQ(tiles, (std::map<std::pair<int, int>, int>{{{0, 5}, 2},  // 1,024 tokens
                                                       {{0, 1}, 1},
                                                       {{1, 3}, 1},
                                                       {{4, 1}, 2},
                                                       {{5, 1}, 2},
                                                       {{6, 3}, 1},
                                                       {{6, 1}, 1},
                                                       {{7, 1}, 1},
                                                       {{8, 1}, 1}}));
  Filled without(plan, lengths, begins);
  EXPECT_EQ(*plan.At(without.words()).used_tiles, 3 + 3 + 4 + 2 + 1 + 1 + 1);
}

TEST(DecodePlanTest, PromptsAreReadOnceWhereItPays) {
  // The number of tiles of sequences of 1,100 tokens that have the first 1,024 in common.
  const auto tiles = [](int sequences, int num_draft_tokens, const DecodeSharing& sharing) {
    std::vector<int32_t> lengths, begins, shared;
    for (int i = 0; i < sequences; ++i) {
      for (int k = 0; k <= num_draft_tokens; ++k) {
        lengths.push_back(1100 + k);
        begins.push_back(100 * i);
        shared.push_back(i > 0 ? 64 : 0);
      }
    }
    const DecodePlan plan(static_cast<int>(lengths.size()), 4096, DecodeSplit(), sharing);
    Filled filled(plan, lengths, begins, shared);
    CheckCovers(plan, plan.At(filled.words()), lengths, begins);
    return *plan.At(filled.words()).used_tiles;
  };
  EXPECT_EQ(tiles(64, 0, {6}), 64 + 11);
  EXPECT_EQ(tiles(48, 0, {6}), 48 + 8);
  EXPECT_EQ(tiles(47, 0, {6}), 47) << "too few";
  EXPECT_EQ(tiles(64, 0, {6, 48, 65}), 64) << "too little";
  EXPECT_EQ(tiles(64, 1, {6}), 64 + 22);
  EXPECT_EQ(tiles(64, 5, {6}), 64) << "draft tokens fill the tiles";
}

// The number of tokens that the tiles of shared.size() sequences read. shared[i] is the number of
// pages that sequence i shares with the one before it.
int64_t TokensRead(const std::vector<int32_t>& shared, int32_t length) {
  std::vector<int32_t> begins;
  for (size_t i = 0; i < shared.size(); ++i) begins.push_back(static_cast<int32_t>(1000 * i));
  const std::vector<int32_t> lengths(shared.size(), length);
  const DecodePlan plan(static_cast<int>(shared.size()), 8192, DecodeSplit(), {6, 1, 32});
  Filled filled(plan, lengths, begins, shared);
  const DecodeArrays at = plan.At(filled.words());
  CheckCovers(plan, at, lengths, begins);
  int64_t tokens = 0;
  for (int i = 0; i < *at.used_tiles; ++i) tokens += at.tiles[i].tokens;
  return tokens;
}

TEST(DecodePlanTest, ALoneSampleSpoilsNoGroup) {
  // Prompts of 250 pages that all begin with the same 40 pages.
  std::vector<int32_t> groups, alone = {0}, between;
  for (int group = 0; group < 4; ++group) {
    between.push_back(between.empty() ? 0 : 40);
    for (int i = 0; i < 6; ++i) {
      for (auto* shared : {&groups, &alone, &between}) {
        shared->push_back(shared->empty() ? 0 : i == 0 ? 40 : 250);
      }
    }
  }
  const int64_t each = 4000 + 6 * 1000;
  EXPECT_EQ(TokensRead(groups, 5000), 4 * each);
  EXPECT_EQ(TokensRead(alone, 5000), 4 * each + 5000);
  EXPECT_EQ(TokensRead(between, 5000), 4 * (each + 5000));
}

TEST(DecodePlanTest, WhatAGroupHasInCommonDoesNotDwindle) {
  // Each sequence shares a little less with the one before it. The group takes sequences that share
  // at least 7/8 of the pages that the first two share.
  EXPECT_EQ(TokensRead({0, 200, 180, 176, 160, 140}, 5000),
            176 * 16 + 4 * (5000 - 176 * 16) + 140 * 16 + 2 * (5000 - 140 * 16));
  EXPECT_EQ(TokensRead({0, 200, 200, 175, 200, 200}, 5000), 175 * 16 + 6 * (5000 - 175 * 16));
}

TEST(DecodePlanTest, APlanThatIsPartlyUsedHasRoom) {
  // Unused rows count as groups; otherwise the used rows would be divided further.
  const DecodePlan plan(16, 4096, DecodeSplitFor(16, false), {6});
  std::vector<int32_t> lengths = {4096, 4095}, begins = {0, 300};
  Filled filled(plan, lengths, begins);
  lengths.resize(16);
  begins.resize(16);
  CheckCovers(plan, plan.At(filled.words()), lengths, begins);
  EXPECT_EQ(plan.At(filled.words()).rows[0].parts, 2);
}

TEST(DecodePlanTest, TilesWithTheSamePagesFollowEachOther) {
  // 13 rows of a sequence in three tiles, each with three parts; the last parts differ in length.
  std::vector<int32_t> lengths(13), begins(13, 70);
  for (int i = 0; i < 13; ++i) lengths[i] = 150 + i;
  const DecodePlan plan(13, 4096, {.parts = 1, .least = 64, .most = 64}, {6});
  Filled filled(plan, lengths, begins);
  const DecodeArrays at = plan.At(filled.words());
  std::vector<int> parts;
  for (int i = 0; i < *at.used_tiles; ++i) parts.push_back(at.tiles[i].part);
  EXPECT_EQ(parts, (std::vector<int>{0, 0, 0, 1, 1, 1, 2, 2, 2}));
}

TEST(DecodePlanTest, DraftTokensSeeOneTokenMoreEach) {
  const DecodePlan plan(2, 4096, DecodeSplit(), {6});
  const std::vector<int32_t> lengths = {31, 33}, begins = {64, 64};
  EXPECT_ANY_THROW(Filled(plan, lengths, begins));
}

TEST(DecodePlanTest, BatchInvariantSamplesShareNothing) {
  const DecodePlan plan(64, 4096, DecodeSplitFor(64, true), DecodeSharingFor(32, 8, true));
  std::vector<int32_t> begins;
  for (int i = 0; i < 64; ++i) begins.push_back(1000 * i);
  Filled filled(plan, std::vector<int32_t>(64, 4096), begins, std::vector<int32_t>(64, 100));
  EXPECT_EQ(*plan.At(filled.words()).used_tiles, 64 * 4);
  EXPECT_EQ(plan.tiles(), 64 * 4);
}

TEST(DecodePlanTest, WhatIsWrittenIsNotCommon) {
  // One row writes to its 33rd page, which both rows claim to share.
  const DecodePlan plan(2, 4096, {.parts = 1, .least = 16}, {2, 1, 16});
  for (const std::vector<int32_t>& lengths : {std::vector<int32_t>{600, 520}, {520, 600}}) {
    Filled filled(plan, lengths, {0, 100}, {0, 33});
    const DecodeArrays at = plan.At(filled.words());
    CheckCovers(plan, at, lengths, {0, 100});
    int common = 0;
    for (int i = 0; i < *at.used_tiles; ++i) {
      if (at.tiles[i].rows == 2) common += at.tiles[i].tokens;
    }
    EXPECT_EQ(common, 512);
  }
}

TEST(DecodePlanTest, RowsOfATileFillItsProducts) {
  EXPECT_EQ(DecodeSharingFor(32, 8, false).tile_rows, 6);
  EXPECT_EQ(DecodeSharingFor(40, 8, false).tile_rows, 4);
  EXPECT_EQ(DecodeSharingFor(16, 8, false).tile_rows, 12);
  EXPECT_EQ(DecodeSharingFor(4, 4, false).tile_rows, 24);
  EXPECT_EQ(DecodeSharingFor(64, 8, false).tile_rows, 3);
  EXPECT_EQ(DecodeSharingFor(16, 1, false).tile_rows, 1);
}

TEST(DecodePlanTest, PlacesDoNotDependOnLengths) {
  const DecodePlan plan(2, 100000, {.parts = 1, .most = 2048});
  Filled filled(plan, {100000, 100000}, {0, 6250});
  const DecodeArrays at = plan.At(filled.words());
  Filled shorter(plan, {7}, {0});
  const DecodeArrays other = plan.At(shorter.words());
  EXPECT_EQ(at.used_tiles - filled.words(), other.used_tiles - shorter.words());
  EXPECT_EQ(*at.used_tiles, plan.tiles());
  EXPECT_EQ(*other.used_tiles, 2);
  // Results and logarithms of 8 heads for each tile of 2,048 tokens.
  EXPECT_EQ(plan.PartialBytes(8, 64), 2 * 49 * 8 * (64 * 2 + 4));
}

// Number of tiles of each chunk.
std::map<int, int> TileCounts(const std::vector<int32_t>& words, const Fa2Chunks& chunks) {
  std::map<int, int> counts;
  for (int t = 0; t < chunks.tiles; ++t) ++counts[words[chunks.requests + t]];
  return counts;
}

TEST(PrefillPlanTest, ShortAndLongChunksAreApart) {
  const std::vector<PrefillChunk> chunks = {
      {0, 1, 500, 0}, {1, 127, 127, 32}, {128, 128, 200, 64}, {256, 0, 0, 96}, {256, 300, 300, 96}};
  const PrefillPlan plan = PlanPrefill({32, 8, 64}, {true, 132}, chunks, 1000);
  EXPECT_EQ(plan.hopper_chunks.pieces, 0);  // FA3 needs heads of 128
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
  for (const int rows : {1, 32, 33, 256, 2048}) {
    for (const int64_t length : {1, 1024, 1025, 30000}) {
      EXPECT_EQ(DecodeSplitFor(rows, true).PartTokens(length, rows), 1024) << rows;
    }
  }
}

TEST(PrefillPlanTest, BatchInvariantChunksAreAllComputedAlike) {
  const std::vector<PrefillChunk> chunks = {{0, 1, 500, 0}, {1, 127, 127, 32}, {128, 300, 428, 64}};
  for (const int dim : {64, 128}) {
    const PrefillPlan plan = PlanPrefill({32, 8, dim}, {true, 132}, chunks, 1000, true);
    EXPECT_EQ(plan.short_chunks.chunks, 0);
    EXPECT_EQ(plan.hopper_chunks.pieces, 0);
    EXPECT_EQ(plan.long_chunks.chunks, 3);
    EXPECT_EQ(TileCounts(plan.words, plan.long_chunks),
              (std::map<int, int>{{0, 1}, {1, 4}, {2, 10}}));
  }
}

TEST(PrefillPlanTest, HopperPiecesAreSharedOutOnceAndEvenly) {
  const std::vector<PrefillChunk> chunks = {{0, 2048, 16384, 0}, {2048, 200, 200, 1024}};
  const int blocks = 132, heads = 32;
  const PrefillPlan plan = PlanPrefill({heads, 8, 128}, {true, blocks}, chunks, 2000);
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
      const PrefillChunk& chunk = chunks[words[at.requests + i]];
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
