#include "rollout/scheduler/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace tritonrl {
namespace {

using Step = Scheduler::Step;

// Collects all draws of a step.
void CollectAll(const Step& step, Scheduler* scheduler) {
  for (const Scheduler::Draw& draw : step.draws) scheduler->UpdateFromDraw(draw);
}

TEST(Scheduler, AGroupsPromptIsComputedOnceAndShared) {
  Scheduler scheduler(
      {.num_pages = 20, .page_size = 4, .max_num_seqs = 8, .max_num_batched_tokens = 100});
  scheduler.Add(0, 10, 6, 3);
  Step step = scheduler.Schedule();
  ASSERT_EQ(step.slices.size(), 1u);
  EXPECT_EQ(step.slices[0].sample, -1);
  EXPECT_EQ(step.slices[0].slice.count, 10);
  EXPECT_EQ(step.slices[0].slice.draws, 3);
  EXPECT_EQ(step.draws.size(), 3u);
  EXPECT_TRUE(scheduler.Schedule().slices.size() == 3) << "their first tokens are in their slots";

  // Two shared full pages, two copies of the third page, and the third page itself, which the last
  // sample takes over.
  EXPECT_EQ(scheduler.pool().num_pages() - scheduler.pool().num_free(), 2 + 3);
  EXPECT_EQ(scheduler.stats().prompt_tokens, 10);
  EXPECT_EQ(scheduler.stats().shared_tokens, 20);
  for (int sample = 0; sample < 3; ++sample) scheduler.Finish(0, sample);
  EXPECT_EQ(scheduler.pool().num_free(), 20);
}

TEST(Scheduler, CopiesComeBeforeTheFirstWrite) {
  Scheduler scheduler(
      {.num_pages = 20, .page_size = 4, .max_num_seqs = 8, .max_num_batched_tokens = 100});
  scheduler.Add(0, 6, 6, 2);
  Step step = scheduler.Schedule();
  const int32_t tail = step.slices[0].slice.pages[1];
  CollectAll(step, &scheduler);
  step = scheduler.Schedule();
  ASSERT_EQ(step.copies.size(), 1u);
  EXPECT_EQ(step.copies[0].from, tail);
  ASSERT_EQ(step.slices.size(), 2u);
  EXPECT_EQ(step.slices[0].slice.pages[1], step.copies[0].to);
  EXPECT_EQ(step.slices[1].slice.pages[1], tail);
  EXPECT_EQ(step.slices[0].slice.pages[0], step.slices[1].slice.pages[0]);
  EXPECT_EQ(step.slices[0].slice.first, 6);
}

TEST(Scheduler, PromptsWhoseLogitsAreWantedAreComputedAsAWhole) {
  Scheduler scheduler({.num_pages = 100,
                       .page_size = 4,
                       .max_num_seqs = 4,
                       .max_num_batched_tokens = 20,
                       .enable_prefix_caching = true,
                       .max_prompt_logits = 8});
  const std::vector<int32_t> prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  scheduler.Add(0, 13, 5, 1, prompt);
  CollectAll(scheduler.Schedule(), &scheduler);
  scheduler.Finish(0, 0);
  scheduler.Add(1, 13, 5, 1, prompt, /*prompt_logits=*/true);
  scheduler.Add(2, 13, 5, 1, prompt);
  Step step = scheduler.Schedule();
  ASSERT_EQ(step.slices.size(), 2u);
  EXPECT_EQ(step.slices[0].slice.first, 0) << "no page of the prefix cache";
  EXPECT_EQ(step.slices[0].slice.count, 8) << "max_prompt_logits";
  EXPECT_TRUE(step.slices[0].slice.all_logits);
  EXPECT_EQ(step.slices[0].slice.logit_rows(), 8);
  EXPECT_EQ(step.slices[1].slice.first, 12);
  EXPECT_FALSE(step.slices[1].slice.all_logits);
  CollectAll(step, &scheduler);
  step = scheduler.Schedule();
  ASSERT_EQ(step.slices.size(), 2u);
  EXPECT_EQ(step.slices[0].slice.first, 8);
  EXPECT_EQ(step.slices[0].slice.count, 5);
  EXPECT_TRUE(step.slices[0].slice.all_logits);
  EXPECT_EQ(scheduler.stats().cached_tokens, 12);
  CollectAll(step, &scheduler);
  scheduler.Invalidate();
  step = scheduler.Schedule();
  EXPECT_FALSE(step.slices[0].slice.all_logits) << "their logits were computed";
}

TEST(Scheduler, PromptsComeInChunksBesideAllThatDecode) {
  Scheduler scheduler(
      {.num_pages = 100, .page_size = 4, .max_num_seqs = 4, .max_num_batched_tokens = 8});
  scheduler.Add(0, 3, 50, 2);
  CollectAll(scheduler.Schedule(), &scheduler);
  scheduler.Add(1, 20, 5, 2);
  std::vector<int64_t> chunks;
  for (int i = 0; i < 4; ++i) {
    const Step step = scheduler.Schedule();
    CollectAll(step, &scheduler);
    ASSERT_EQ(step.slices.size(), 3u);
    EXPECT_EQ(step.slices[0].sample, 0);
    EXPECT_EQ(step.slices[1].sample, 1);
    EXPECT_EQ(step.slices[2].group, 1);
    chunks.push_back(step.slices[2].slice.count);
  }
  EXPECT_EQ(chunks, (std::vector<int64_t>{6, 6, 6, 2}));
  EXPECT_EQ(scheduler.Schedule().slices.size(), 4u);
}

// Tokens of the prompts' chunks in a step.
int64_t ChunkTokens(const Step& step) {
  int64_t tokens = 0;
  for (const auto& [group, sample, slice] : step.slices) {
    tokens += slice.count > 1 ? slice.count : 0;
  }
  return tokens;
}

TEST(Scheduler, WhileSamplesWaitChunksFillStepsUpToABound) {
  // Memory for two samples but no third.
  Scheduler scheduler({.num_pages = 40,
                       .page_size = 4,
                       .max_num_seqs = 8,
                       .max_num_batched_tokens = 100,
                       .prefill_budget = 24});
  scheduler.Add(0, 10, 4, 1);
  Step step = scheduler.Schedule();
  EXPECT_EQ(ChunkTokens(step), 10);
  CollectAll(step, &scheduler);
  scheduler.Add(1, 70, 8, 1);
  scheduler.Add(2, 70, 8, 1);
  scheduler.Add(3, 40, 8, 1);
  step = scheduler.Schedule();
  EXPECT_EQ(scheduler.num_waiting(), 2);
  EXPECT_EQ(ChunkTokens(step), 20) << "23 beside the one that decodes, in whole pages";
  CollectAll(step, &scheduler);
  scheduler.Finish(2, 0);
  scheduler.Finish(3, 0);
  step = scheduler.Schedule();
  EXPECT_EQ(scheduler.num_waiting(), 0);
  EXPECT_EQ(ChunkTokens(step), 50) << "nobody waits any more";
  CollectAll(step, &scheduler);
  CollectAll(scheduler.Schedule(), &scheduler);
  scheduler.Add(4, 50, 8, 1);
  step = scheduler.Schedule();
  EXPECT_EQ(scheduler.num_waiting(), 0);
  EXPECT_EQ(ChunkTokens(step), 50) << "there is room for it at once";
}

TEST(Scheduler, ChunksAreLargeBesideSamplesThatWaitForTheirLastDraw) {
  Scheduler scheduler({.num_pages = 40,
                       .page_size = 4,
                       .max_num_seqs = 8,
                       .max_num_batched_tokens = 60,
                       .prefill_budget = 24});
  for (int64_t group = 0; group < 4; ++group) scheduler.Add(group, 60, 1, 1);
  EXPECT_EQ(ChunkTokens(scheduler.Schedule()), 60);
  EXPECT_GT(scheduler.num_waiting(), 0);
  EXPECT_EQ(ChunkTokens(scheduler.Schedule()), 60) << "nothing decodes";
}

TEST(Scheduler, ChunksAreLargeWhereAllBatchSlotsFillSteps) {
  for (const int max_num_seqs : {2, 3, 8}) {
    Scheduler scheduler({.num_pages = 100,
                         .page_size = 4,
                         .max_num_seqs = max_num_seqs,
                         .max_num_batched_tokens = 64,
                         .prefill_budget = 8});
    scheduler.Add(0, 4, 9, 1);
    CollectAll(scheduler.Schedule(), &scheduler);
    for (int64_t group = 1; group < 12; ++group) scheduler.Add(group, 30, 9, 1);
    const Step step = scheduler.Schedule();
    EXPECT_GT(scheduler.num_waiting(), 0);
    // 7 tokens beside the decode, rounded down to whole pages. With 8 batch slots decodes alone
    // fill the steps, so chunks are not limited.
    EXPECT_EQ(ChunkTokens(step), max_num_seqs < 8 ? 4 : 63) << max_num_seqs;
  }
}

TEST(Scheduler, ChunksBesideManyThatDecodeAreNotTooSmall) {
  Scheduler scheduler({.num_pages = 100,
                       .page_size = 4,
                       .max_num_seqs = 40,
                       .max_num_batched_tokens = 200,
                       .prefill_budget = 32});
  scheduler.Add(0, 4, 9, 30);
  CollectAll(scheduler.Schedule(), &scheduler);
  scheduler.Add(1, 40, 9, 1);
  scheduler.Add(2, 180, 9, 1);
  EXPECT_EQ(ChunkTokens(scheduler.Schedule()), 8) << "a quarter of 32, not the 2 that are left";
  EXPECT_EQ(scheduler.num_waiting(), 1);
}

TEST(Scheduler, SamplesThatWaitHaveTheirFirstTokenFromTheOnePrompt) {
  Scheduler scheduler(
      {.num_pages = 100, .page_size = 4, .max_num_seqs = 2, .max_num_batched_tokens = 64});
  scheduler.Add(0, 9, 3, 5);
  const Step step = scheduler.Schedule();
  ASSERT_EQ(step.draws.size(), 5u);
  EXPECT_EQ(step.draws[0].slot, 0);
  EXPECT_EQ(step.draws[1].slot, 1);
  EXPECT_EQ(step.draws[2].slot, -1);
  CollectAll(step, &scheduler);
  scheduler.Finish(0, 0);
  scheduler.Finish(0, 3);  // its first token was a stop token
  std::set<int> samples;
  for (const auto& scheduled : scheduler.Schedule().slices) samples.insert(scheduled.sample);
  EXPECT_EQ(samples, (std::set<int>{1, 2}));
  EXPECT_EQ(scheduler.stats().prompt_tokens, 9);
  EXPECT_EQ(scheduler.num_waiting(), 1);
}

TEST(Scheduler, TheYoungestGivesWayAndComesBack) {
  // Each of the two samples needs 3 pages at its end; there are 4.
  Scheduler scheduler(
      {.num_pages = 4, .page_size = 4, .max_num_seqs = 2, .max_num_batched_tokens = 64});
  scheduler.Add(0, 4, 9, 1);
  scheduler.Add(1, 4, 9, 1);
  EXPECT_FALSE(scheduler.Fits(4, 14));
  EXPECT_TRUE(scheduler.Fits(4, 13));
  std::map<int64_t, int64_t> drawn;
  bool waited = false;
  while (drawn[0] < 9) {
    const Step step = scheduler.Schedule();
    ASSERT_FALSE(step.slices.empty());
    EXPECT_EQ(step.slices[0].group, 0) << "the oldest is never left out";
    for (const Scheduler::Draw& draw : step.draws) drawn[draw.group] = draw.index + 1;
    CollectAll(step, &scheduler);
    waited = waited || scheduler.num_waiting() == 1;
  }
  EXPECT_TRUE(waited);
  EXPECT_EQ(scheduler.stats().preemptions, 1);
  scheduler.Finish(0, 0);
  const int64_t before = drawn[1];
  const Step step = scheduler.Schedule();
  ASSERT_EQ(step.slices.size(), 1u);
  EXPECT_EQ(step.slices[0].slice.first, 4) << "the prompt is still there";
  EXPECT_EQ(step.slices[0].slice.count, before);
  EXPECT_EQ(step.draws[0].index, before);
  EXPECT_EQ(scheduler.stats().recomputed_tokens, before - 1);
}

TEST(Scheduler, AdmissionLeavesRoomToGrow) {
  // Each sample needs 1 page at its start and 4 at its end. Not all 8 that would fit at first are
  // admitted.
  Scheduler scheduler(
      {.num_pages = 8, .page_size = 4, .max_num_seqs = 8, .max_num_batched_tokens = 64});
  for (int64_t group = 0; group < 8; ++group) scheduler.Add(group, 3, 14, 1);
  CollectAll(scheduler.Schedule(), &scheduler);
  EXPECT_GT(scheduler.num_running(), 2);
  EXPECT_LT(scheduler.num_running(), 6);
}

TEST(Scheduler, WholeSamplesRunWhenTheyFitToTheirEnds) {
  // Each sample needs 4 pages at its end: two fit in 8 pages, and the third starts when one has
  // ended.
  Scheduler scheduler({.num_pages = 8,
                       .page_size = 4,
                       .max_num_seqs = 8,
                       .max_num_batched_tokens = 64,
                       .reserve_max_tokens = true});
  for (int64_t group = 0; group < 3; ++group) scheduler.Add(group, 3, 14, 1);
  for (int64_t drawn = 0; drawn < 14; ++drawn) {
    const Step step = scheduler.Schedule();
    ASSERT_EQ(step.slices.size(), 2u);
    for (const auto& [group, sample, slice] : step.slices) {
      EXPECT_EQ(slice.count, drawn == 0 ? 3 : 1);
    }
    CollectAll(step, &scheduler);
  }
  scheduler.Finish(1, 0);
  const Step step = scheduler.Schedule();
  ASSERT_EQ(step.slices.size(), 1u);
  EXPECT_EQ(step.slices[0].group, 2);
  EXPECT_EQ(scheduler.stats().preemptions, 0);
}

TEST(Scheduler, ChunksOfPromptsAreWhole) {
  Scheduler scheduler({.num_pages = 40,
                       .page_size = 4,
                       .max_num_seqs = 2,
                       .max_num_batched_tokens = 22,
                       .enable_prefix_caching = true,
                       .reserve_max_tokens = true,
                       .chunk_alignment = 8});
  const std::vector<int32_t> prompt(45, 7);
  const auto chunks = [&](int64_t group) {
    scheduler.Add(group, 45, 5, 2, prompt);
    std::vector<std::pair<int64_t, int64_t>> found;  // [first, end)
    for (bool drawn = false; !drawn;) {
      const Step step = scheduler.Schedule();
      found.emplace_back(step.slices[0].slice.first,
                         step.slices[0].slice.first + step.slices[0].slice.count);
      CollectAll(step, &scheduler);
      drawn = !step.draws.empty();
    }
    for (int sample = 0; sample < 2; ++sample) scheduler.Finish(group, sample);
    return found;
  };
  EXPECT_EQ(chunks(0), (std::vector<std::pair<int64_t, int64_t>>{{0, 16}, {16, 32}, {32, 45}}));
  EXPECT_EQ(scheduler.stats().cached_tokens, 0);
  EXPECT_EQ(chunks(1), (std::vector<std::pair<int64_t, int64_t>>{{40, 45}}));
  EXPECT_EQ(scheduler.stats().cached_tokens, 40);
}

TEST(Scheduler, APromptIsKeptThoughItsDrawsComeOutLate) {
  Scheduler scheduler({.num_pages = 40,
                       .page_size = 4,
                       .max_num_seqs = 2,
                       .max_num_batched_tokens = 50,
                       .enable_prefix_caching = true,
                       .reserve_max_tokens = true});
  const std::vector<int32_t> prompt(45, 7);
  scheduler.Add(0, 45, 5, 2, prompt);
  const Step first = scheduler.Schedule(), second = scheduler.Schedule();
  CollectAll(first, &scheduler);
  CollectAll(second, &scheduler);
  for (int sample = 0; sample < 2; ++sample) scheduler.Finish(0, sample);
  scheduler.Add(1, 45, 5, 2, prompt);
  EXPECT_EQ(scheduler.Schedule().slices[0].slice.first, 44);
}

// More samples of one group fit because they share the prompt: 2 shared pages, 1 page for each
// sample, and 1 that the prompt keeps for waiting samples.
TEST(Scheduler, WholeSamplesCountASharedPromptOnce) {
  Scheduler scheduler({.num_pages = 7,
                       .page_size = 4,
                       .max_num_seqs = 8,
                       .max_num_batched_tokens = 64,
                       .reserve_max_tokens = true});
  scheduler.Add(0, 9, 4, 8);
  CollectAll(scheduler.Schedule(), &scheduler);
  EXPECT_EQ(scheduler.num_running(), 4);
}

}  // namespace
}  // namespace tritonrl
