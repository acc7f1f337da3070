// Packs steps and looks up, in CPU memory, the words that the step's launches read on the GPU.
#include "rollout/cuda/step_packer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace tritonrl {
namespace {

class StepPackerTest : public testing::Test {
 protected:
  StepPackerTest()
      : tables_({.slots = 8,
                 .max_length = 100,
                 .max_tokens = 64,
                 .shape = {.query_heads = 4, .key_heads = 2, .head_dim = 64},
                 .device = {.hopper = false, .multiprocessors = 8}}),
        memory_(tables_.words(), -5) {}

  // Packs the step, copies its block and applies its updates, as the runner does before launches.
  PackedStep Apply(const ModelStep& step) {
    std::vector<int32_t> block(tables_.block_words(), -7);
    const PackedStep packed = tables_.Pack(step, block.data());
    EXPECT_LE(packed.used, tables_.block_words());
    std::copy_n(block.begin(), packed.used, memory_.begin() + tables_.block());
    for (int i = 0; i < packed.update_count; ++i) {
      const int32_t* pair = At(packed.updates) + 2 * i;
      memory_.at(pair[0]) = pair[1];
    }
    return packed;
  }

  const int32_t* At(int64_t place) const { return memory_.data() + place; }
  const SamplingRow& Draw(const PackedStep& packed, int i) const {
    return reinterpret_cast<const SamplingRow*>(At(packed.draws))[i];
  }
  // The input token of a decode row.
  int32_t Token(const PackedStep& packed, int row) const {
    return At(tables_.last_tokens())[At(packed.slots)[row]];
  }
  void ExpectRow(const PackedStep& packed, int row, int32_t token, int32_t position, int32_t page) {
    SCOPED_TRACE(testing::Message() << "row " << row);
    EXPECT_EQ(Token(packed, row), token);
    EXPECT_EQ(At(packed.positions)[row], position);
    EXPECT_EQ(At(packed.page_slots)[row], PageSlot(page, position));
    const DecodeArrays decode = packed.decode->At(At(packed.decode_words));
    const DecodeTile* tile = decode.tiles;
    while (row < tile->row || row >= tile->row + tile->rows) ++tile;
    EXPECT_EQ(tile->tokens - (tile->row + tile->rows - 1 - row) * tile->fewer, position + 1)
        << "sees itself and what is before it";
    EXPECT_EQ(At(tile->first_page)[position / kPageTokens], page);
  }

  StepPacker tables_;
  std::vector<int32_t> memory_;
  const SamplingSettings sampling_;
};

TEST_F(StepPackerTest, ADraftIsARowOfItsOwnOnTheSamePages) {
  const std::vector<int32_t> tokens = {40, 41, 42, 43}, pages = {9, 3, 6}, other_pages = {2};
  const std::vector<int32_t> other_token = {50};
  ModelStep step;
  step.slices = {
      {.tokens = other_token, .slot = 5, .first = 7, .count = 1, .pages = other_pages, .draws = 1},
      {.tokens = tokens,
       .slot = 2,
       .first = 30,
       .count = 4,
       .pages = pages,
       .draws = 4,
       .num_draft_tokens = 3}};
  step.draws = {{.slot = 5, .sampling = &sampling_, .stream = 1, .position = 4}};
  for (int64_t k = 0; k < 4; ++k) {
    step.draws.push_back({.slot = -1, .sampling = &sampling_, .stream = 2, .position = 10 + k});
  }
  const PackedStep packed = Apply(step);
  EXPECT_TRUE(packed.only_decodes()) << "a graph of as many rows serves it";
  EXPECT_EQ(packed.rows, StepPacker::RowsFor(5));
  EXPECT_EQ(packed.logit_rows, packed.rows);
  EXPECT_EQ(packed.draw_rows, packed.rows);
  ExpectRow(packed, 0, 50, 7, 2);
  ExpectRow(packed, 1, 40, 30, 3);
  ExpectRow(packed, 2, 41, 31, 3);
  ExpectRow(packed, 3, 42, 32, 6);
  ExpectRow(packed, 4, 43, 33, 6);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Draw(packed, i).logits_row, i);
    EXPECT_EQ(Draw(packed, i).slot, i == 0 ? 5 : -1);
    EXPECT_EQ(Draw(packed, i).position, i == 0 ? 4 : 9 + i);
  }
  for (int i = 5; i < packed.draw_rows; ++i) EXPECT_LT(Draw(packed, i).logits_row, 0);
  for (int64_t i = 5; i < packed.rows; ++i) EXPECT_EQ(At(packed.page_slots)[i], kNoPageSlot);
}

TEST_F(StepPackerTest, DraftTokensBesideChunks) {
  const std::vector<int32_t> tokens = {40, 41, 42}, pages = {4, 7}, prompt = {1, 2, 3, 4, 5},
                             prompt_pages = {8};
  ModelStep step;
  step.slices = {{.tokens = prompt, .first = 0, .count = 5, .pages = prompt_pages, .draws = 2},
                 {.tokens = tokens,
                  .slot = 1,
                  .first = 15,
                  .count = 3,
                  .pages = pages,
                  .draws = 3,
                  .num_draft_tokens = 2}};
  step.draws.resize(5, {.sampling = &sampling_});
  const PackedStep packed = Apply(step);
  EXPECT_FALSE(packed.only_decodes());
  ExpectRow(packed, 0, 40, 15, 4);
  ExpectRow(packed, 1, 41, 16, 7);
  ExpectRow(packed, 2, 42, 17, 7);
  const int64_t chunk = packed.decode->rows();
  for (int k = 0; k < 5; ++k) {
    EXPECT_EQ(At(packed.chunk_tokens)[k], prompt[k]);
    EXPECT_EQ(At(packed.positions)[chunk + k], k);
  }
  // Two draws from the prompt's last row, then one from each row of the draft tokens.
  const std::vector<int32_t> rows = {static_cast<int32_t>(chunk) + 4,
                                     static_cast<int32_t>(chunk) + 4, 0, 1, 2};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(At(packed.logit_ids)[Draw(packed, i).logits_row], rows[i]);
}

// The logits of a whole prompt are computed after the step, from the rows of its chunk.
TEST_F(StepPackerTest, AllLogitsOfAChunkArePackedLikeNone) {
  const std::vector<int32_t> prompt = {1, 2, 3, 4, 5}, prompt_pages = {8};
  ModelStep step;
  step.slices = {{.tokens = prompt, .count = 5, .pages = prompt_pages, .draws = 1}};
  step.draws.resize(1, {.sampling = &sampling_});
  step.slices[0].all_logits = true;
  const PackedStep packed = Apply(step);
  EXPECT_FALSE(StepPacker::Decodes(step.slices[0]));
  EXPECT_EQ(packed.decode, nullptr) << "the chunk begins at row 0";
  EXPECT_EQ(packed.logit_rows, StepPacker::RowsFor(1));
  EXPECT_EQ(At(packed.logit_ids)[Draw(packed, 0).logits_row], 4);
}

TEST_F(StepPackerTest, ATokenThatIsNotKnownIsInItsSlot) {
  const std::vector<int32_t> tokens = {40, 41}, pages = {4};
  ModelStep step;
  step.slices = {{.tokens = tokens,
                  .slot = 3,
                  .first = 2,
                  .count = 2,
                  .pages = pages,
                  .draws = 2,
                  .num_draft_tokens = 1}};
  step.draws.resize(2, {.sampling = &sampling_});
  Apply(step);
  step.slices = {{.slot = 3, .first = 3, .count = 1, .pages = pages, .draws = 1}};
  step.draws.resize(1);
  memory_.at(tables_.last_tokens() + 3) = 77;  // as if the GPU drew it
  ExpectRow(Apply(step), 0, 77, 3, 4);
}

// Number of decode attention tiles of a step of 64 samples that have 64 pages in common.
int TilesOfSamplesOfAPrompt(bool batch_invariant) {
  const SamplingSettings sampling;
  StepPacker tables({.slots = 64,
                     .max_length = 1100,
                     .max_tokens = 64,
                     .shape = {.query_heads = 4, .key_heads = 2, .head_dim = 64},
                     .device = {.hopper = false, .multiprocessors = 8},
                     .batch_invariant = batch_invariant});
  std::vector<std::vector<int32_t>> pages(64, std::vector<int32_t>(65));
  const std::vector<int32_t> token = {7};
  ModelStep step;
  for (int i = 0; i < 64; ++i) {
    std::iota(pages[i].begin(), pages[i].end(), 0);
    pages[i].back() = 100 + i;
    step.slices.push_back(
        {.tokens = token, .slot = i, .first = 1030, .count = 1, .pages = pages[i], .draws = 1});
  }
  step.draws.resize(64, {.sampling = &sampling});
  std::vector<int32_t> block(tables.block_words());
  const PackedStep packed = tables.Pack(step, block.data());
  return *packed.decode->At(block.data() + packed.decode_words - tables.block()).used_tiles;
}

TEST(StepPackerTogetherTest, WhatSamplesOfAPromptHaveInCommonIsReadOnce) {
  EXPECT_EQ(TilesOfSamplesOfAPrompt(false), 64 + 6);
  EXPECT_EQ(TilesOfSamplesOfAPrompt(true), 2 * 64) << "a row has parts of 1,024 tokens";
}

}  // namespace
}  // namespace tritonrl
