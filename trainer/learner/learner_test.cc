#include "trainer/learner/learner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/file.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "trainer/objective/advantage.h"
#include "trainer/objective/hrd_loss.h"
#include "trainer/testing/test_model.h"

namespace tritonrl {
namespace {

std::vector<int32_t> RandomTokens(Philox* random, int n) {
  std::vector<int32_t> tokens(n);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random->Below(256));
  return tokens;
}

class LearnerTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto dir = MakeTempDirectory("learner");
    ASSERT_TRUE(dir.ok());
    dir_ = *dir;
    policy_ = LoadTinyPolicy(dir_);
    auto ranks = ProcessGroup::Join(absl::Seconds(10));
    ASSERT_TRUE(ranks.ok());
    ranks_ = *std::move(ranks);
  }
  void TearDown() override { RemoveTree(dir_).IgnoreError(); }

  // Groups with random rewards. Old log-probabilities are the policy's own, shifted by `shift`
  // times a normal draw.
  RlBatch MakeBatch(int groups, int group_size, double shift) {
    Philox random(11);
    RlBatch batch(groups);
    for (int g = 0; g < groups; ++g) {
      batch[g].task_id = absl::StrCat("task", g);
      const std::vector<int32_t> prompt = RandomTokens(&random, 5 + g);
      for (int j = 0; j < group_size; ++j) {
        RlSample& s = batch[g].samples.emplace_back();
        s.prompt = prompt;
        s.response = RandomTokens(&random, 6 + static_cast<int>(random.Below(10)));
        s.plan_end = 3;
        s.reward_correct = static_cast<double>(random.Below(2));
        s.reward_speedup = s.reward_correct * 2 * random.Uniform();
        s.old_log_probs = LogProbs(s);
        for (float& p : s.old_log_probs) p -= static_cast<float>(shift * random.Normal());
      }
    }
    FillAdvantages(options_.objective, &batch);
    return batch;
  }

  std::vector<float> LogProbs(const RlSample& sample) {
    std::vector<int32_t> sequence = sample.prompt;
    sequence.insert(sequence.end(), sample.response.begin(), sample.response.end());
    const std::vector<std::vector<int32_t>> sequences = {sequence};
    const PackedBatch batch = PackSequences(sequences);
    const at::Tensor log_probs =
        policy_.transformer->Forward(batch, NextTokenTargets(batch), options_.temperature, nullptr)
            .log_probs;
    std::vector<float> values;
    for (size_t t = 0; t < sample.response.size(); ++t) {
      values.push_back(log_probs[sample.prompt.size() + t - 1].item<float>());
    }
    return values;
  }

  // The paper's objective in double, token by token.
  double Objective(const RlBatch& batch) {
    const ObjectiveConfig& o = options_.objective;
    const double alpha = o.reward_shape() == UNIFORM ? 1 : o.alpha();
    double sum = 0;
    for (const RlGroup& group : batch) {
      for (const RlSample& s : group.samples) {
        const std::vector<float> now = LogProbs(s);
        double plan = 0, code = 0;
        for (size_t t = 0; t < now.size(); ++t) {
          const bool is_plan = static_cast<int>(t) < s.plan_end;
          const double a = is_plan ? s.advantage_plan : s.advantage_code;
          const double ratio = std::exp(static_cast<double>(now[t]) - s.old_log_probs[t]);
          const double clipped = std::clamp(ratio, 1 - o.epsilon(), 1 + o.epsilon());
          (is_plan ? plan : code) += std::min(a * ratio, a * clipped);
        }
        sum += (alpha * plan + code) / static_cast<double>(now.size()) /
               static_cast<double>(group.samples.size()) / static_cast<double>(batch.size());
      }
    }
    return sum;
  }

  absl::StatusOr<LearnStats> LearnOnce(const RlBatch& batch) {
    optimizer_ = std::make_unique<AdamW>(options_.optimizer, policy_.weights);
    Learner learner(options_, &policy_, optimizer_.get(), ranks_.get());
    return learner.Learn(batch, 0);
  }

  std::string dir_;
  Policy policy_;
  LearnerOptions options_;
  std::unique_ptr<ProcessGroup> ranks_;
  std::unique_ptr<AdamW> optimizer_;
};

TEST_F(LearnerTest, LossIsMinusThePapersObjective) {
  for (const RewardShape shape : {HRD, UNIFORM, SPEEDUP_SPEEDUP}) {
    options_.objective.set_reward_shape(shape);
    options_.temperature = 0.8;
    const RlBatch batch = MakeBatch(3, 4, 0.3);
    const double objective = Objective(batch);  // before the weights change
    const auto stats = LearnOnce(batch);
    ASSERT_TRUE(stats.ok()) << stats.status();
    EXPECT_NEAR(stats->loss, -objective, 1e-6) << RewardShape_Name(shape);
    EXPECT_GT(stats->clip_fraction, 0.05);
    EXPECT_EQ(stats->optimizer_steps, 1);
  }
}

TEST_F(LearnerTest, AnUpdateRaisesTheObjective) {
  options_.optimizer.set_learning_rate(1e-3);
  const RlBatch batch = MakeBatch(3, 4, 0.0);
  const double before = Objective(batch);
  const auto stats = LearnOnce(batch);
  ASSERT_TRUE(stats.ok());
  EXPECT_GT(Objective(batch), before + 1e-4);
  EXPECT_NEAR(stats->mean_ratio, 1.0, 1e-5);
  EXPECT_LT(stats->logprob_max_diff, 1e-5);
  EXPECT_EQ(stats->clip_fraction, 0);
  EXPECT_GT(stats->entropy, 1);
}

TEST_F(LearnerTest, MicroBatchesDoNotChangeTheResult) {
  const RlBatch batch = MakeBatch(4, 4, 0.3);
  const at::Tensor start = policy_.weights->flat().clone();
  options_.micro_batch_tokens = 1 << 20;
  const auto whole = LearnOnce(batch);
  ASSERT_TRUE(whole.ok());
  const at::Tensor whole_weights = policy_.weights->flat().clone();
  at::Tensor(policy_.weights->flat()).copy_(start);
  options_.micro_batch_tokens = 40;
  const auto pieces = LearnOnce(batch);
  ASSERT_TRUE(pieces.ok());
  EXPECT_NEAR(pieces->loss, whole->loss, 1e-7);
  EXPECT_NEAR(pieces->gradient_norm, whole->gradient_norm, 1e-5 * whole->gradient_norm);
  EXPECT_EQ(pieces->tokens, whole->tokens);
}

TEST_F(LearnerTest, SamplesWithoutAdvantageAreSkippedWithoutChangingAnything) {
  RlBatch batch = MakeBatch(3, 4, 0.0);
  for (RlSample& s : batch[1].samples) s.reward_correct = s.reward_speedup = 1;
  FillAdvantages(options_.objective, &batch);
  const double objective = Objective(batch);
  const auto stats = LearnOnce(batch);
  ASSERT_TRUE(stats.ok());
  EXPECT_GE(stats->skipped_samples, 4);
  EXPECT_EQ(stats->samples + stats->skipped_samples, 12);
  EXPECT_NEAR(stats->loss, -objective, 1e-6);
}

TEST_F(LearnerTest, NothingToLearnLeavesTheWeightsButMeasures) {
  RlBatch batch = MakeBatch(2, 3, 0.1);
  for (RlGroup& group : batch) {
    for (RlSample& s : group.samples) s.reward_correct = s.reward_speedup = 0;
  }
  FillAdvantages(options_.objective, &batch);
  const at::Tensor before = policy_.weights->flat().clone();
  const auto stats = LearnOnce(batch);
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->optimizer_steps, 0);
  EXPECT_EQ(stats->skipped_steps, 1);
  EXPECT_GT(stats->logprob_max_diff, 0.001);  // the shift
  EXPECT_TRUE(policy_.weights->flat().equal(before));
}

TEST_F(LearnerTest, SeveralOptimizerStepsReachTheClip) {
  options_.objective.set_epochs_per_batch(4);
  options_.objective.set_optimizer_steps_per_epoch(2);
  options_.objective.set_epsilon(0.02);
  options_.optimizer.set_learning_rate(3e-3);
  const RlBatch batch = MakeBatch(4, 4, 0.0);
  const auto stats = LearnOnce(batch);
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->optimizer_steps, 8);
  EXPECT_GT(stats->clip_fraction, 0.05);
  EXPECT_LT(stats->logprob_max_diff, 1e-5);  // of the first update only
  EXPECT_EQ(stats->samples + stats->skipped_samples, 16);
}

TEST_F(LearnerTest, UncountedSamplesLeaveTheGroup) {
  RlBatch batch = MakeBatch(2, 4, 0.2);
  batch[0].samples[2].counted = false;
  batch[0].samples[2].old_log_probs.clear();  // must not be read
  for (RlSample& s : batch[1].samples) s.counted = false;
  FillAdvantages(options_.objective, &batch);
  const auto stats = LearnOnce(batch);
  ASSERT_TRUE(stats.ok()) << stats.status();
  RlBatch rest(1);
  for (const int j : {0, 1, 3}) rest[0].samples.push_back(batch[0].samples[j]);
  policy_ = LoadTinyPolicy(dir_);  // restores the initial weights
  EXPECT_NEAR(stats->loss, -Objective(rest), 1e-6);
}

TEST_F(LearnerTest, KlPenaltyPullsTowardsTheReference) {
  options_.objective.set_kl_coefficient(0.5);
  RlBatch batch = MakeBatch(2, 2, 0.0);
  double expected = 0;
  for (RlGroup& group : batch) {
    for (RlSample& s : group.samples) {
      s.reward_correct = s.reward_speedup = 0;
      s.reference_log_probs = s.old_log_probs;
      for (float& p : s.reference_log_probs) p -= 0.2F;
      expected += 0.5 * (std::exp(-0.2) + 0.2 - 1) / 4;
    }
  }
  FillAdvantages(options_.objective, &batch);
  const auto stats = LearnOnce(batch);
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_NEAR(stats->loss, expected, 1e-5);
  EXPECT_NEAR(stats->kl, std::exp(-0.2) + 0.2 - 1, 1e-5);
  EXPECT_EQ(stats->optimizer_steps, 1);
}

TEST_F(LearnerTest, NamesTheTaskOfASampleThatDoesNotFit) {
  RlBatch batch = MakeBatch(2, 2, 0.0);
  batch[1].samples[1].old_log_probs.pop_back();
  const auto stats = LearnOnce(batch);
  EXPECT_EQ(stats.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(stats.status().message().find("sample 1 of task task1"), absl::string_view::npos)
      << stats.status();
}

TEST_F(LearnerTest, StopsAfterGradientsThatAreNotFinite) {
  options_.optimizer.set_max_consecutive_skipped(2);
  const auto folder = MakeTempDirectory("nonfinite_gradients");
  ASSERT_TRUE(folder.ok());
  options_.nonfinite_gradients = *folder;
  const RlBatch batch = MakeBatch(2, 2, 0.0);
  policy_.weights->Get("model.norm.weight")[0].fill_(std::numeric_limits<float>::quiet_NaN());
  AdamW optimizer(options_.optimizer, policy_.weights);
  Learner learner(options_, &policy_, &optimizer, ranks_.get());
  const auto first = learner.Learn(batch, 0);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->skipped_steps, 1);
  const auto kept = nlohmann::json::parse(*ReadFile(*folder + "/update_000000_rank_0.json"));
  EXPECT_FALSE(kept["parameters"].empty());
  EXPECT_EQ(kept["sequences"].size(), first->samples);
  EXPECT_EQ(kept["sequences"][0]["prompt"].size(), batch[0].samples[0].prompt.size());
  const auto second = learner.Learn(batch, 1);
  EXPECT_NE(second.status().message().find("not finite 2 times in a row"), absl::string_view::npos)
      << second.status();
  EXPECT_TRUE(FileExists(*folder + "/update_000001_rank_0.json"));
  RemoveTree(*folder).IgnoreError();
}

// Compares d loss / d weight with finite differences through model, loss and normalization.
TEST_F(LearnerTest, GradientMatchesFiniteDifferences) {
  options_.optimizer.set_clip_norm(0);
  options_.optimizer.set_beta1(0);  // makes the first moment equal to the gradient
  const RlBatch batch = MakeBatch(2, 3, 0.05);
  const at::Tensor start = policy_.weights->flat().clone();
  ASSERT_TRUE(LearnOnce(batch).ok());
  const at::Tensor gradient = optimizer_->first_moment().clone();
  at::Tensor flat = policy_.weights->flat();
  flat.copy_(start);
  // The change is largest along the gradient: loss(w + h g) - loss(w - h g) = 2 h |g|^2.
  const double norm2 = gradient.to(at::kDouble).square().sum().item<double>();
  ASSERT_GT(norm2, 1e-6);
  const double h = 1e-2 / std::sqrt(norm2);
  flat.copy_(start).add_(gradient, h);
  const double up = -Objective(batch);
  flat.copy_(start).add_(gradient, -h);
  const double down = -Objective(batch);
  EXPECT_NEAR((up - down) / (2 * h), norm2, 0.02 * norm2);
}

}  // namespace
}  // namespace tritonrl
