#include "exec/timing/speedup.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "base/random.h"
#include "exec/device_backend.h"
#include "exec/reference/reference_runner.h"
#include "exec/timing/timing_result.h"

namespace tritonrl {
namespace {

// Blocks with the true ratio `ratio` and relative noise `noise` on each side. If `disturbed`, other
// load slows the candidate down five times in every tenth block.
std::vector<TimedBlock> Blocks(int count, double ratio, double noise, uint64_t key,
                               bool disturbed = false) {
  Philox random(key);
  std::vector<TimedBlock> blocks;
  for (int i = 0; i < count; ++i) {
    const double clock = 1 + 0.1 * i / count;  // the same drift for both sides
    TimedBlock block{1e-4 * ratio * clock * (1 + noise * random.Normal()),
                     1e-4 * clock * (1 + noise * random.Normal())};
    if (disturbed && i % 10 == 3) block.candidate *= 5;
    blocks.push_back(block);
  }
  return blocks;
}

TEST(SpeedupIntervalTest, Median) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({3, 1}), 2);
  EXPECT_EQ(Median({9, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 9}), 3);
}

TEST(SpeedupIntervalTest, EqualBlocksLeaveNoDoubt) {
  const SpeedupInterval exact = EstimateSpeedup(Blocks(6, 1.5, 0, 1));
  EXPECT_NEAR(exact.speedup, 1.5, 1e-12);
  EXPECT_NEAR(exact.low, 1.5, 1e-12);
  EXPECT_NEAR(exact.high, 1.5, 1e-12);
  EXPECT_LT(exact.HalfWidth(), 1e-12);
  EXPECT_EQ(EstimateSpeedup({}).speedup, 0);
  EXPECT_EQ(EstimateSpeedup({}).HalfWidth(), 1);
}

// The interval contains the true ratio in 95 % of experiments, within chance and the known error of
// the method, even for the few blocks that slow kernels get.
TEST(SpeedupIntervalTest, CoversTheTruthAsOftenAsItSays) {
  constexpr int kExperiments = 300;
  for (const int blocks : {3, 4, 6, 10, 24}) {
    int covered = 0;
    for (int i = 0; i < kExperiments; ++i) {
      const SpeedupInterval interval = EstimateSpeedup(Blocks(blocks, 1.3, 0.02, 100 + i));
      covered += interval.low <= 1.3 && 1.3 <= interval.high;
      EXPECT_LE(interval.low, interval.speedup);
      EXPECT_GE(interval.high, interval.speedup);
    }
    EXPECT_GT(covered, 0.91 * kExperiments) << blocks << " blocks";
    EXPECT_LT(covered, 0.995 * kExperiments) << blocks << " blocks";
  }
}

// By the formula: the resampled medians of two blocks span both ratios, and the factor for two
// blocks is 12.706 * sqrt(2) / 1.96.
TEST(SpeedupIntervalTest, TwoBlocksSayLittleAndOneNothing) {
  const SpeedupInterval two = EstimateSpeedup({{1.00e-3, 1e-3}, {1.02e-3, 1e-3}});
  EXPECT_NEAR(two.speedup, 1.01, 1e-12);
  EXPECT_NEAR(two.low, 1.01 - 0.01 * 9.168, 1e-4);
  EXPECT_NEAR(two.high, 1.01 + 0.01 * 9.168, 1e-4);
  const SpeedupInterval one = EstimateSpeedup({{3e-3, 1e-3}});
  EXPECT_EQ(one.speedup, 3);
  EXPECT_EQ(one.low, 0);
  EXPECT_GT(one.high, 1e300);
}

TEST(SpeedupIntervalTest, MoreBlocksNarrowIt) {
  EXPECT_LT(EstimateSpeedup(Blocks(60, 1, 0.02, 5)).HalfWidth(),
            0.6 * EstimateSpeedup(Blocks(8, 1, 0.02, 5)).HalfWidth());
}

TEST(SpeedupIntervalTest, DisturbedBlocksDoNotMoveIt) {
  const SpeedupInterval interval = EstimateSpeedup(Blocks(40, 2, 0.005, 7, /*disturbed=*/true));
  EXPECT_NEAR(interval.speedup, 2, 0.01);
  EXPECT_GT(interval.low, 1.97);
  EXPECT_LT(interval.high, 2.03);
}

TEST(SpeedupIntervalTest, TheSameBlocksGiveTheSameInterval) {
  const SpeedupInterval a = EstimateSpeedup(Blocks(12, 1.1, 0.03, 9));
  const SpeedupInterval b = EstimateSpeedup(Blocks(12, 1.1, 0.03, 9));
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
}

TEST(SpeedupIntervalTest, ShortKernelsAreMoreInDoubt) {
  const std::vector<TimedBlock> exact(6, TimedBlock{100e-6, 50e-6});
  const SpeedupInterval wide = WithSystematicError(EstimateSpeedup(exact), exact);
  EXPECT_EQ(wide.speedup, 2);
  EXPECT_NEAR(wide.low, 2 / 1.02, 1e-9);  // 1 % plus 0.5 us / 50 us
  EXPECT_NEAR(wide.high, 2 * 1.02, 1e-9);
  const std::vector<TimedBlock> brief(6, TimedBlock{4e-6, 2e-6});
  EXPECT_GT(WithSystematicError(EstimateSpeedup(brief), brief).high, 2.4);
}

// A reference whose call reads and writes 400 MB each, on a GPU of 1 TB/s.
class ConcludeSpeedupTest : public testing::Test {
 protected:
  void SetUp() override {
    Leaf tensor;
    tensor.kind = Leaf::Kind::kTensor;
    tensor.type = DType::kFloat32;
    tensor.elements = tensor.distinct_elements = 100'000'000;
    reference_.inputs = {{tensor}};
    reference_.outputs = {{tensor}};
    AtenOp* const op = reference_.run.add_reference_ops();
    op->set_name("aten.relu");
    op->set_bytes(800e6);
    reference_.run.set_reference_seconds(2e-3);
    reference_.bytes_per_second = 1e12;
  }

  // Of a candidate whose time is modelled, or measured.
  ExecResult Conclude(double candidate_seconds, bool modelled) {
    reference_.run.set_modelled(modelled);
    ExecResult result;
    SetOutcome(Outcome::OK, "", result.mutable_outcome());
    if (modelled) {
      result.set_candidate_seconds(candidate_seconds);
      ConcludeSpeedup(reference_, std::nullopt, &result);
      return result;
    }
    TimingResult timing;
    timing.reference_seconds = 2e-3;
    timing.candidate_seconds = candidate_seconds;
    timing.speedup = {.speedup = 2e-3 / candidate_seconds, .low = 1, .high = 3};
    timing.bytes_per_second = 1e12;
    ConcludeSpeedup(reference_, timing, &result);
    return result;
  }

  ReferenceResult reference_;
};

TEST_F(ConcludeSpeedupTest, TheFloorIsTheTrafficOfInputsAndOutputs) {
  const ExecResult modelled = Conclude(1e-3, /*modelled=*/true);
  EXPECT_EQ(modelled.outcome().reason(), Outcome::OK) << modelled.ShortDebugString();
  EXPECT_NEAR(modelled.floor_seconds(), 800e-6, 1e-12);
  EXPECT_NEAR(modelled.speedup(), 2, 1e-9);
  // Measured, the GPU's cache may hold 64 MiB of it, and memory is up to 1.5 times faster than the
  // test of it.
  const ExecResult measured = Conclude(1e-3, /*modelled=*/false);
  EXPECT_EQ(measured.outcome().reason(), Outcome::OK) << measured.ShortDebugString();
  EXPECT_NEAR(measured.floor_seconds(), (800e6 - (64 << 20)) / 1.5e12, 1e-12);
  EXPECT_NEAR(measured.speedup(), 2, 1e-9);
  EXPECT_EQ(measured.timing().speedup_high(), 3);
}

TEST_F(ConcludeSpeedupTest, TimesThatCannotBeAreInconclusive) {
  for (const bool modelled : {true, false}) {
    for (const double seconds :
         {4e-4, 0.0, -1e-3, std::numeric_limits<double>::quiet_NaN(),
          std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
      const ExecResult result = Conclude(seconds, modelled);
      EXPECT_EQ(result.outcome().reason(), Outcome::INCONCLUSIVE) << seconds << modelled;
      EXPECT_EQ(result.outcome().status(), Outcome::STATUS_INFRA_ERROR);
      EXPECT_FALSE(result.has_speedup()) << seconds << modelled;
    }
  }
}

TEST_F(ConcludeSpeedupTest, AReferenceThatMovesLittleBoundsLess) {
  reference_.run.mutable_reference_ops(0)->set_bytes(80e6);  // a view of its input
  const ExecResult result = Conclude(1e-4, /*modelled=*/true);
  EXPECT_EQ(result.outcome().reason(), Outcome::OK) << result.ShortDebugString();
  EXPECT_NEAR(result.floor_seconds(), 80e-6, 1e-12);
}

TEST_F(ConcludeSpeedupTest, WithoutTimesOrWithALostTimerThereIsNoSpeedup) {
  reference_.run.set_modelled(false);
  ExecResult result;
  ConcludeSpeedup(reference_, std::nullopt, &result);
  EXPECT_EQ(result.outcome().reason(), Outcome::INTERNAL_ERROR);
  TimingResult lost;
  lost.kind = TimingResult::Kind::kTimerFailed;
  lost.text = "the timer is lost";
  ConcludeSpeedup(reference_, lost, &result);
  EXPECT_EQ(result.outcome().reason(), Outcome::INTERNAL_ERROR);
  EXPECT_EQ(result.outcome().message(), "the timer is lost");
  EXPECT_FALSE(result.has_speedup());
  // A modelled candidate that has no time, as nobody asked for one.
  reference_.run.set_modelled(true);
  ExecResult untimed;
  SetOutcome(Outcome::OK, "", untimed.mutable_outcome());
  ConcludeSpeedup(reference_, std::nullopt, &untimed);
  EXPECT_EQ(untimed.outcome().reason(), Outcome::OK);
  EXPECT_FALSE(untimed.has_speedup());
}

}  // namespace
}  // namespace tritonrl
