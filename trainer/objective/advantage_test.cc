#include "trainer/objective/advantage.h"

#include "gtest/gtest.h"

namespace tritonrl {
namespace {

TEST(AssignRewards, GivesEachShapeItsRewards) {
  ObjectiveConfig objective;
  const PlanCode hrd = AssignRewards(objective, 1.0, 1.6);
  EXPECT_DOUBLE_EQ(hrd.plan, 1.6);
  EXPECT_DOUBLE_EQ(hrd.code, 1.0);

  objective.set_reward_shape(UNIFORM);
  objective.set_beta(0.25);
  const PlanCode uniform = AssignRewards(objective, 1.0, 1.6);
  EXPECT_DOUBLE_EQ(uniform.plan, 0.25 * 1.0 + 0.75 * 1.6);
  EXPECT_DOUBLE_EQ(uniform.code, uniform.plan);

  objective.set_reward_shape(SPEEDUP_SPEEDUP);
  const PlanCode both = AssignRewards(objective, 1.0, 1.6);
  EXPECT_DOUBLE_EQ(both.plan, 1.6);
  EXPECT_DOUBLE_EQ(both.code, 1.6);
}

TEST(ClassWeights, UniformHasNoAlpha) {
  ObjectiveConfig objective;
  objective.set_alpha(0.1);
  EXPECT_DOUBLE_EQ(ClassWeights(objective).plan, 0.1);
  EXPECT_DOUBLE_EQ(ClassWeights(objective).code, 1.0);
  objective.set_reward_shape(SPEEDUP_SPEEDUP);
  EXPECT_DOUBLE_EQ(ClassWeights(objective).plan, 0.1);
  objective.set_reward_shape(UNIFORM);
  EXPECT_DOUBLE_EQ(ClassWeights(objective).plan, 1.0);
}

TEST(GroupAdvantages, SubtractsTheMeanAndDoesNotDivide) {
  const std::vector<double> rewards = {0, 1, 2, 5};
  const std::vector<double> a = GroupAdvantages(rewards, {true, true, true, true});
  EXPECT_EQ(a, (std::vector<double>{-2, -1, 0, 3}));
}

TEST(GroupAdvantages, LeavesOutSamplesThatDoNotCount) {
  const std::vector<double> rewards = {0, 100, 1, 2};
  const std::vector<double> a = GroupAdvantages(rewards, {true, false, true, true});
  EXPECT_EQ(a, (std::vector<double>{-1, 0, 0, 1}));
  EXPECT_EQ(GroupAdvantages(rewards, std::vector<bool>(4, false)), std::vector<double>(4, 0.0));
}

TEST(GroupAdvantages, EqualRewardsGiveExactZeros) {
  // 0.1 * 3 / 3 is not 0.1 in binary: the mean alone would leave a residue of 1e-17.
  const std::vector<double> rewards = {0.1, 0.1, 0.1};
  EXPECT_EQ(GroupAdvantages(rewards, {true, true, true}), std::vector<double>(3, 0.0));
}

RlSample Sample(double correct, double speedup, int plan_end, int length) {
  RlSample sample;
  sample.reward_correct = correct;
  sample.reward_speedup = speedup;
  sample.plan_end = plan_end;
  sample.response.resize(length);
  return sample;
}

TEST(FillAdvantages, SeparatesPlanFromCode) {
  RlBatch batch(1);
  batch[0].samples = {Sample(1, 2.0, 2, 4), Sample(1, 1.0, 2, 4), Sample(0, 0.0, 2, 4)};
  FillAdvantages(ObjectiveConfig(), &batch);
  const auto& s = batch[0].samples;
  EXPECT_DOUBLE_EQ(s[0].advantage_plan, 1.0);
  EXPECT_DOUBLE_EQ(s[1].advantage_plan, 0.0);
  EXPECT_DOUBLE_EQ(s[2].advantage_plan, -1.0);
  EXPECT_DOUBLE_EQ(s[0].advantage_code, 1.0 / 3);
  EXPECT_DOUBLE_EQ(s[2].advantage_code, -2.0 / 3);
}

TEST(HasGradient, NeedsTokensAdvantageAndWeight) {
  ObjectiveConfig objective;
  RlSample sample = Sample(1, 1, 2, 4);
  EXPECT_FALSE(HasGradient(objective, sample));
  sample.advantage_plan = 0.5;
  EXPECT_TRUE(HasGradient(objective, sample));
  objective.set_alpha(0);  // plan tokens weigh nothing
  EXPECT_FALSE(HasGradient(objective, sample));
  objective.set_alpha(0.1);
  sample.plan_end = 0;  // no plan tokens
  EXPECT_FALSE(HasGradient(objective, sample));
  sample.advantage_code = -0.5;
  EXPECT_TRUE(HasGradient(objective, sample));
  sample.counted = false;
  EXPECT_FALSE(HasGradient(objective, sample));
}

}  // namespace
}  // namespace tritonrl
