#include "bench/rollout/scheduler_simulator.h"

#include <gtest/gtest.h>

#include <vector>

namespace tritonrl {
namespace {

// A step takes one millisecond per token.
StepCostModel OnePerToken() {
  return {.gemm_ms = {},
          .token_flop = 1e9,
          .gemm_tflops = 1,
          .token_bytes = 0,
          .pair_flop = 0,
          .row_ms = 0,
          .fixed_ms = 0};
}

TEST(StepCostModel, ProductsAreBoundByWeightsThenByArithmetic) {
  const StepCostModel cost;
  EXPECT_DOUBLE_EQ(cost.GemmMs(1), 3.9);
  EXPECT_DOUBLE_EQ(cost.GemmMs(32), 4.4);
  EXPECT_DOUBLE_EQ(cost.GemmMs(80), 4.5) << "half of the way from 4.4 to 4.6";
  EXPECT_NEAR(cost.GemmMs(1000), 1000 * 16.4e9 / 700e12 * 1e3, 1e-9);
}

TEST(StepCostModel, PartsOfAStepAddUp) {
  const StepCostModel cost;
  // Attention of one token a sample reads all of the cache.
  const double decoding = cost.StepMs({.rows = 128, .context = 786432});
  EXPECT_NEAR(decoding, 4.6 + 786432 * 147456.0 / 4.3e12 * 1e3 + 128 * 0.0025 + 0.3, 1e-9);
  // 128 more prompt tokens cost as much as the GEMMs of 256 rows, plus their attention.
  const double mixed =
      cost.StepMs({.rows = 128, .context = 786432, .chunk_tokens = 128, .pairs = 128 * 1000});
  EXPECT_EQ(StepCostModel{.prefill_step_ms = 5}.StepMs({.rows = 128, .context = 786432}), decoding);
  EXPECT_NEAR(mixed - decoding, 6.0 - 4.6 + 128e3 * 589824 / 550e12 * 1e3, 1e-9);
}

TEST(StepShape, RowsAndChunksAreToldApart) {
  Scheduler scheduler(
      {.num_pages = 20, .page_size = 4, .max_num_seqs = 4, .max_num_batched_tokens = 6});
  scheduler.Add(0, 5, 6, 2);
  StepShape shape = ShapeOf(scheduler.Schedule());
  EXPECT_EQ(shape.rows, 0);
  EXPECT_EQ(shape.chunk_tokens, 5);
  EXPECT_EQ(shape.pairs, 1 + 2 + 3 + 4 + 5);
  scheduler.Add(1, 7, 6, 1);
  shape = ShapeOf(scheduler.Schedule());
  EXPECT_EQ(shape.rows, 2);
  EXPECT_EQ(shape.context, 12) << "each reads the prompt and itself";
  EXPECT_EQ(shape.chunk_tokens, 4);
  shape = ShapeOf(scheduler.Schedule());
  EXPECT_EQ(shape.pairs, 5 + 6 + 7);
}

TEST(SimulateSchedule, CountsEveryStep) {
  const Scheduler::Options options = {
      .num_pages = 20, .page_size = 4, .max_num_seqs = 4, .max_num_batched_tokens = 6};
  ScheduleLoad load = {.prompt = 10, .max_tokens = 3, .lengths = {3}};
  // Chunks of 6 and 4, then two tokens; the last one drawn is not fed back.
  ScheduleReport report = SimulateSchedule(options, load, OnePerToken());
  EXPECT_EQ(report.steps, 4);
  EXPECT_DOUBLE_EQ(report.seconds, 0.012);
  EXPECT_DOUBLE_EQ(report.tokens_per_s, 250);
  EXPECT_DOUBLE_EQ(report.prefill_share, 10.0 / 12);
  EXPECT_DOUBLE_EQ(report.idle_share, 0.75);
  EXPECT_DOUBLE_EQ(report.rows, 0.5);
  // At an early stop token the next step is already in flight.
  load.max_tokens = 9;
  EXPECT_EQ(SimulateSchedule(options, load, OnePerToken()).steps, 5);
}

TEST(SimulateSchedule, LittleMemoryCostsTime) {
  Scheduler::Options options = {
      .num_pages = 200, .page_size = 4, .max_num_seqs = 8, .max_num_batched_tokens = 64};
  const ScheduleLoad load = {
      .prompt = 20, .max_tokens = 40, .group = 2, .lengths = {40, 40, 40, 17, 40, 33, 40, 40}};
  const ScheduleReport ample = SimulateSchedule(options, load, OnePerToken());
  options.num_pages = 40;
  const ScheduleReport little = SimulateSchedule(options, load, OnePerToken());
  EXPECT_EQ(ample.stats.recomputed_tokens, 0);
  EXPECT_EQ(ample.recompute_share, 0);
  EXPECT_GT(little.stats.preemptions, 0);
  // With a cost of one per token, the share is exactly that of the recomputed tokens.
  EXPECT_NEAR(little.recompute_share * little.seconds * 1000,
              static_cast<double>(little.stats.recomputed_tokens), 1e-6);
  EXPECT_GT(little.occupancy, ample.occupancy);
  EXPECT_LE(little.occupancy, 1);
}

TEST(IdealSeconds, NoOrderIsFaster) {
  const StepCostModel cost;
  Scheduler::Options options = {
      .num_pages = 800, .max_num_seqs = 64, .max_num_batched_tokens = 512};
  for (const int group : {1, 4}) {
    for (const int pages : {200, 800, 4000}) {
      options.num_pages = pages;
      ScheduleLoad load = {.prompt = 300, .max_tokens = 400, .group = group};
      for (int i = 0; i < 64; ++i) load.lengths.push_back(100 + i % 7 * 50);
      EXPECT_LT(IdealSeconds(options, load, cost), SimulateSchedule(options, load, cost).seconds)
          << pages << " pages, groups of " << group;
    }
  }
}

}  // namespace
}  // namespace tritonrl
