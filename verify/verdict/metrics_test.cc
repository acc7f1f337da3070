#include "verify/verdict/metrics.h"

#include "exec/device_backend.h"
#include "gtest/gtest.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

// A verdict whose first `reached` layers pass and whose next layer fails: 1 syntax,
// 2 functionality, 3 compiled, 4 correct with a speedup.
Verdict Make(const std::string& task, int reached, double speedup = 0) {
  Verdict v;
  v.set_task_id(task);
  MutableResult(LAYER_SYNTAX, &v)->set_reason(reached >= 1 ? Outcome::OK : Outcome::NO_KERNEL);
  if (reached >= 1) {
    MutableResult(LAYER_FUNCTIONALITY, &v)
        ->set_reason(reached >= 2 ? Outcome::OK : Outcome::FORBIDDEN);
  }
  if (reached >= 2) {
    MutableResult(LAYER_COMPILED, &v)
        ->set_reason(reached >= 3 ? Outcome::OK : Outcome::COMPILE_ERROR);
  }
  if (reached >= 3) {
    MutableResult(LAYER_CORRECT, &v)->set_reason(reached >= 4 ? Outcome::OK : Outcome::MISMATCH);
  }
  if (reached >= 4) {
    v.mutable_speedup()->set_speedup(speedup);
    v.mutable_speedup()->set_modelled(true);
  }
  Summarize(&v);
  return v;
}

TEST(RewardTest, FollowsThePaper) {
  struct Case {
    int reached;
    double speedup, correct_reward, speedup_reward;
  };
  for (const Case& c : std::vector<Case>{{0, 0, 0, 0},
                                         {1, 0, 0, 0},
                                         {2, 0, 0, 0},
                                         {3, 0, 0, 0},
                                         {4, 0.5, 1, 0.5},
                                         {4, 1.5, 1, 1.5},
                                         {4, 2.0, 1, 2},
                                         {4, 7.0, 1, 2}}) {
    const auto rewards = ComputeRewards(Make("t", c.reached, c.speedup));
    ASSERT_TRUE(rewards.has_value());
    EXPECT_DOUBLE_EQ(rewards->correct, c.correct_reward) << c.reached << " " << c.speedup;
    EXPECT_DOUBLE_EQ(rewards->speedup, c.speedup_reward) << c.reached << " " << c.speedup;
  }
  EXPECT_DOUBLE_EQ(ComputeRewards(Make("t", 4, 7.0), 3.0)->speedup, 3.0);
}

TEST(RewardTest, SpeedupNeedsCorrect) {
  // The speedup of an incorrect candidate gives no reward, even if it was measured.
  Verdict v = Make("t", 3);
  v.mutable_speedup()->set_speedup(5);
  EXPECT_DOUBLE_EQ(ComputeRewards(v)->speedup, 0);
  EXPECT_DOUBLE_EQ(SpeedupOf(v), 0);
}

TEST(RewardTest, JudgeIsAPartOfValid) {
  Verdict v = Make("t", 4, 1.5);
  MutableResult(LAYER_JUDGE, &v)->set_reason(Outcome::CHEATING);
  EXPECT_FALSE(IsValid(v));
  EXPECT_DOUBLE_EQ(ComputeRewards(v)->correct, 0);
  EXPECT_DOUBLE_EQ(ComputeRewards(v)->speedup, 0);
  MutableResult(LAYER_JUDGE, &v)->set_reason(Outcome::OK);
  EXPECT_DOUBLE_EQ(ComputeRewards(v)->correct, 1);
}

TEST(RewardTest, InfraErrorsAreNoReward) {
  Verdict v = Make("t", 2);
  SetOutcome(Outcome::WORKER_LOST, "", v.mutable_outcome());
  EXPECT_FALSE(ComputeRewards(v).has_value());
}

TEST(RewardTest, UniformMixesByBeta) {
  const Rewards rewards{.correct = 1.0, .speedup = 1.6};
  EXPECT_DOUBLE_EQ(UniformReward(rewards, 1.0), 1.0);
  EXPECT_DOUBLE_EQ(UniformReward(rewards, 0.0), 1.6);
  EXPECT_DOUBLE_EQ(UniformReward(rewards, 0.25), 0.25 + 0.75 * 1.6);
}

TEST(MetricsTest, FastNeedsTheLowerEndOfAMeasuredInterval) {
  const auto measured = [](const std::string& task, double low, double speedup) {
    Verdict v = Make(task, 4, speedup);
    v.mutable_speedup()->set_modelled(false);
    v.mutable_speedup()->mutable_timing()->set_speedup_low(low);
    v.mutable_speedup()->mutable_timing()->set_speedup_high(2 * speedup - low);
    return v;
  };
  MetricsBuilder builder;
  builder.Add(measured("a", 0.99, 1.05));  // the interval contains 1
  builder.Add(measured("b", 1.01, 1.05));
  builder.Add(measured("c", 1.9, 2.1));
  builder.Add(measured("d", 2.05, 2.1));
  const Metrics m = builder.MaxOverSamples();
  EXPECT_DOUBLE_EQ(m.fast_1, 0.75);
  EXPECT_DOUBLE_EQ(m.fast_2, 0.25);
  EXPECT_NEAR(m.mean_speedup, (1.05 + 1.05 + 2.1 + 2.1) / 4, 1e-12);
  // By the paper's rules the value counts, as there is no interval.
  Verdict paper = measured("e", 0, 1.05);
  paper.mutable_speedup()->set_mean_of_calls(true);
  MetricsBuilder by_value;
  by_value.Add(paper);
  EXPECT_DOUBLE_EQ(by_value.MaxOverSamples().fast_1, 1);
  // A modelled speedup has no interval; its own value is used.
  EXPECT_DOUBLE_EQ(SpeedupLowOf(Make("t", 4, 1.3)), 1.3);
  EXPECT_DOUBLE_EQ(SpeedupLowOf(Make("t", 3, 1.3)), 0);
}

TEST(MetricsTest, MaximumOverSamplesThenMeanOverTasks) {
  MetricsBuilder builder;
  builder.Add(Make("a", 1));  // fails functionality
  builder.Add(Make("a", 4, 2.5));
  builder.Add(Make("b", 3));  // compiles, but is incorrect
  builder.Add(Make("b", 2));
  builder.Add(Make("c", 4, 1.0));  // correct, but not above 1
  builder.Add(Make("c", 4, 0.5));
  builder.Add(Make("d", 0));
  const Metrics m = builder.MaxOverSamples();
  EXPECT_EQ(m.tasks, 4);
  EXPECT_EQ(m.samples, 7);
  EXPECT_DOUBLE_EQ(m.syntax, 0.75);
  EXPECT_DOUBLE_EQ(m.valid, 0.75);
  EXPECT_DOUBLE_EQ(m.compiled, 0.75);
  EXPECT_DOUBLE_EQ(m.correct, 0.5);
  EXPECT_DOUBLE_EQ(m.fast_1, 0.25);
  EXPECT_DOUBLE_EQ(m.fast_2, 0.25);
  EXPECT_DOUBLE_EQ(m.mean_speedup, (2.5 + 0 + 1.0 + 0) / 4);
  EXPECT_TRUE(m.modelled);
  EXPECT_DOUBLE_EQ(builder.MaxOverFirst(1).correct, 0.25);
}

TEST(MetricsTest, FaultsAreLeftOutAndCounted) {
  MetricsBuilder builder;
  Verdict fault = Make("a", 2);
  SetOutcome(Outcome::DEADLINE, "", fault.mutable_outcome());
  builder.Add(fault);
  fault.set_task_id("b");
  builder.Add(fault);
  builder.Add(Make("a", 4, 1.2));
  const Metrics m = builder.MaxOverSamples();
  EXPECT_EQ(m.tasks, 1);
  EXPECT_EQ(m.infra_errors, 2);
  EXPECT_EQ(m.tasks_left_out, 1);
  EXPECT_DOUBLE_EQ(m.correct, 1.0);
}

TEST(MetricsTest, PassAtKMatchesCountingSubsets) {
  // 2 of 5 good, k = 2: 1 - C(3,2)/C(5,2) = 1 - 3/10.
  EXPECT_NEAR(PassAtKEstimate(5, 2, 2), 0.7, 1e-12);
  EXPECT_NEAR(PassAtKEstimate(10, 3, 1), 0.3, 1e-12);
  EXPECT_DOUBLE_EQ(PassAtKEstimate(10, 0, 5), 0.0);
  EXPECT_DOUBLE_EQ(PassAtKEstimate(10, 6, 5), 1.0);
}

TEST(MetricsTest, ExpectedSpeedupIsTheMeanOverAllSubsets) {
  MetricsBuilder builder;
  const std::vector<double> speedups = {0.4, 3.0, 1.5, 1.1};
  for (double s : speedups) builder.Add(Make("a", 4, s));
  builder.Add(Make("a", 0));
  std::vector<double> all = speedups;
  all.push_back(0);
  double sum = 0;
  int subsets = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = i + 1; j < all.size(); ++j) {
      for (size_t k = j + 1; k < all.size(); ++k, ++subsets)
        sum += std::max({all[i], all[j], all[k]});
    }
  }
  const auto m = builder.PassAtK(3);
  ASSERT_TRUE(m.ok()) << m.status();
  EXPECT_NEAR(m->mean_speedup, sum / subsets, 1e-12);
  EXPECT_NEAR(m->fast_2, 0.6, 1e-12);  // one of n = 5 samples is above 2: k / n
  const auto all_five = builder.PassAtK(5);
  EXPECT_NEAR(all_five->mean_speedup, 3.0, 1e-12);
  EXPECT_NEAR(builder.PassAtK(1)->mean_speedup, 6.0 / 5, 1e-12);
}

TEST(MetricsTest, TooFewSamplesNamesTheTask) {
  MetricsBuilder builder;
  builder.Add(Make("level1/relu", 4, 1.2));
  const auto m = builder.PassAtK(2);
  ASSERT_FALSE(m.ok());
  EXPECT_NE(std::string(m.status().message()).find("level1/relu"), std::string::npos);
}

}  // namespace
}  // namespace tritonrl
