// Learning from groups as they come gives what learning from the whole batch gives.
#include <limits>
#include <optional>

#include "base/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "trainer/advantage.h"
#include "trainer/learner.h"
#include "trainer/random_rl_batch.h"
#include "trainer/tiny_policy_fixture.h"

namespace tritonrl {
namespace {

constexpr int kGroups = 6, kGroupSize = 3;

class LearnerEarlyTest : public TinyPolicyFixture {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(TinyPolicyFixture::SetUp());
    options_.optimizer.set_clip_norm(0);
    options_.optimizer.set_beta1(0);  // the first moment then is the gradient
    options_.micro_batch_tokens = 90;
    options_.temperature = 0.9;
  }

  RlBatch MakeBatch() const {
    RlBatch batch = RandomRlBatch(5, kGroups, kGroupSize);
    batch[1].samples[2].counted = false;
    for (RlSample& s : batch[3].samples) s.reward_correct = s.reward_speedup = 1;
    FillAdvantages(options_.objective, &batch);
    return batch;
  }

  struct Outcome {
    LearnStats stats;
    at::Tensor gradient, weights;
    int64_t passed = 0;  // samples, early
  };
  // At the first weights, from the first `early` groups early; none at all without a value.
  Outcome Learn(const RlBatch& batch, std::optional<size_t> early) {
    GoToStart();
    LearnerOptions options = options_;
    if (early.has_value()) options.early_groups = kGroups;
    AdamW optimizer(options.optimizer, policy_.weights);
    Learner learner(options, &policy_, &optimizer, ranks_.get());
    return Learn(batch, early.value_or(0), 0, optimizer, &learner);
  }
  static Outcome Learn(RlBatch batch, size_t early, int64_t step, const AdamW& optimizer,
                       Learner* learner) {
    Outcome outcome;
    for (size_t g = 0; g < early; ++g) outcome.passed += Early(batch[g], step, learner);
    batch.erase(batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(early));
    const auto stats = learner->Learn(batch, step);
    EXPECT_TRUE(stats.ok()) << stats.status();
    outcome.stats = stats.value_or(LearnStats());
    outcome.gradient = optimizer.first_moment().clone();
    outcome.weights = optimizer.weights()->flat().clone();
    return outcome;
  }
  static int64_t Early(const RlGroup& group, int64_t step, Learner* learner) {
    const absl::StatusOr<int64_t> passed = learner->LearnEarly(group, step);
    EXPECT_TRUE(passed.ok()) << passed.status();
    return passed.value_or(0);
  }

  // Up to the order of sums of single precision.
  static void ExpectNear(const Outcome& a, const Outcome& b) {
    const double norm = b.gradient.norm().item<double>();
    EXPECT_GT(norm, 1e-3);
    EXPECT_LT(a.gradient.sub(b.gradient).norm().item<double>(), 1e-6 * norm);
    EXPECT_NEAR(a.stats.loss, b.stats.loss, 1e-7);
    EXPECT_NEAR(a.stats.gradient_norm, b.stats.gradient_norm, 1e-6 * norm);
    EXPECT_NEAR(a.stats.mean_ratio, b.stats.mean_ratio, 1e-6);
    EXPECT_NEAR(a.stats.entropy, b.stats.entropy, 1e-5);
    EXPECT_NEAR(a.stats.kl, b.stats.kl, 1e-6);
    EXPECT_NEAR(a.stats.logprob_max_diff, b.stats.logprob_max_diff, 1e-5);
    EXPECT_EQ(a.stats.clip_fraction, b.stats.clip_fraction);
    EXPECT_EQ(a.stats.samples, b.stats.samples);
    EXPECT_EQ(a.stats.skipped_samples, b.stats.skipped_samples);
    EXPECT_EQ(a.stats.tokens, b.stats.tokens);
    EXPECT_EQ(a.stats.optimizer_steps, b.stats.optimizer_steps);
  }
  static void ExpectSameBits(const Outcome& a, const Outcome& b) {
    EXPECT_TRUE(a.gradient.equal(b.gradient));
    EXPECT_TRUE(a.weights.equal(b.weights));
    EXPECT_EQ(a.stats.loss, b.stats.loss);
    EXPECT_EQ(a.stats.tokens, b.stats.tokens);
  }

  LearnerOptions options_;
};

TEST_F(LearnerEarlyTest, TheGradientIsThatOfTheWholeBatch) {
  for (const double kl : {0.0, 0.1}) {
    options_.objective.set_kl_coefficient(kl);
    const RlBatch batch = MakeBatch();
    const Outcome whole = Learn(batch, std::nullopt);
    const Outcome none = Learn(batch, 0), some = Learn(batch, 3), all = Learn(batch, kGroups);
    EXPECT_EQ(whole.stats.optimizer_steps, 1);
    EXPECT_EQ(none.passed, 0);
    EXPECT_GT(some.passed, 3);
    EXPECT_GT(all.passed, some.passed);
    EXPECT_LT(all.passed, all.stats.samples);  // into the last micro-batch more might have fitted
    ExpectNear(all, whole);
    // Which of them came early changes nothing at all.
    ExpectSameBits(none, all);
    ExpectSameBits(some, all);
  }
}

TEST_F(LearnerEarlyTest, AGroupThatIsMissingWeighsNothing) {
  RlBatch batch = MakeBatch();
  for (RlSample& s : batch[4].samples) s.counted = false;
  FillAdvantages(options_.objective, &batch);
  const Outcome whole = Learn(batch, std::nullopt);
  const Outcome none = Learn(batch, 0), some = Learn(batch, 4), all = Learn(batch, kGroups);
  EXPECT_GT(some.passed, 0);
  ExpectNear(all, whole);
  ExpectSameBits(none, all);
  ExpectSameBits(some, all);
}

TEST_F(LearnerEarlyTest, WhatWasBegunOfAnInterruptedStepIsDropped) {
  const RlBatch batch = MakeBatch();
  const Outcome alone = Learn(batch, 3);
  GoToStart();
  options_.early_groups = kGroups;
  AdamW optimizer(options_.optimizer, policy_.weights);
  Learner learner(options_, &policy_, &optimizer, ranks_.get());
  int64_t passed = 0;
  for (size_t g = 0; g < 5; ++g) passed += Early(batch[g], 7, &learner);
  EXPECT_GT(passed, 0);
  EXPECT_TRUE(policy_.weights->flat().equal(start_));
  ExpectSameBits(Learn(batch, 3, 0, optimizer, &learner), alone);
}

TEST_F(LearnerEarlyTest, NothingToLearnLeavesTheWeightsButMeasures) {
  RlBatch batch = MakeBatch();
  for (RlGroup& group : batch) {
    for (RlSample& s : group.samples) s.reward_correct = s.reward_speedup = 0;
  }
  FillAdvantages(options_.objective, &batch);
  const Outcome all = Learn(batch, kGroups);
  EXPECT_EQ(all.passed, 0);
  EXPECT_EQ(all.stats.optimizer_steps, 0);
  EXPECT_EQ(all.stats.skipped_steps, 1);
  EXPECT_GT(all.stats.logprob_max_diff, 0.001);
  EXPECT_TRUE(all.weights.equal(start_));
}

TEST_F(LearnerEarlyTest, AGradientThatIsNotFiniteIsLeftOutAndKept) {
  const auto folder = MakeTempDirectory("bad_gradients");
  ASSERT_TRUE(folder.ok());
  options_.bad_gradients = *folder;
  options_.early_groups = kGroups;
  RlBatch batch = MakeBatch();
  const Outcome good = Learn(batch, kGroups);
  GoToStart();
  AdamW optimizer(options_.optimizer, policy_.weights);
  Learner learner(options_, &policy_, &optimizer, ranks_.get());
  const float kept = batch[0].samples[0].old_log_probs[0];
  batch[0].samples[0].old_log_probs[0] = std::numeric_limits<float>::quiet_NaN();
  const Outcome bad = Learn(batch, kGroups, 0, optimizer, &learner);
  EXPECT_EQ(bad.stats.skipped_steps, 1);
  EXPECT_EQ(learner.skipped_in_a_row(), 1);
  EXPECT_TRUE(bad.weights.equal(start_));
  const auto text = nlohmann::json::parse(*ReadFile(*folder + "/update_000000_rank_0.json"));
  EXPECT_FALSE(text["parameters"].empty());
  EXPECT_EQ(text["sequences"].size(), bad.stats.samples);  // those that came early too
  // Nothing of it is left in the next gradient.
  batch[0].samples[0].old_log_probs[0] = kept;
  ExpectSameBits(Learn(batch, kGroups, 1, optimizer, &learner), good);
  RemoveTree(*folder).IgnoreError();
}

TEST_F(LearnerEarlyTest, NamesTheTaskOfASampleThatDoesNotFit) {
  RlBatch batch = MakeBatch();
  batch[2].samples[1].old_log_probs.pop_back();
  options_.early_groups = kGroups;
  AdamW optimizer(options_.optimizer, policy_.weights);
  Learner learner(options_, &policy_, &optimizer, ranks_.get());
  const absl::Status status = learner.LearnEarly(batch[2], 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("sample 1 of task task2"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace tritonrl
