// One step of supervised fine-tuning: its gradient, and the state after a non-finite gradient.
#include "trainer/sft/sft_learner.h"

#include <ATen/ops/ge.h>

#include <limits>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "gtest/gtest.h"
#include "trainer/sft/test_tokens.h"
#include "trainer/testing/tiny_policy_fixture.h"

namespace tritonrl {
namespace {

class SftLearnerTest : public TinyPolicyFixture {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(TinyPolicyFixture::SetUp());
    config_.set_clip_norm(0);
    config_.set_beta1(0);  // makes the first moment equal to the gradient
    std::string text;
    for (int i = 0; i < 12; ++i) {
      text += absl::StrCat("{\"prompt\": \"say ", i, "\", \"response\": \"",
                           std::string(3 + i * i % 29, static_cast<char>('a' + i)), "\"}\n");
    }
    ASSERT_TRUE(WriteFileAtomic(dir_ + "/data.jsonl", text).ok());
    auto data = TokensOf(policy_, {dir_ + "/data.jsonl"}, dir_ + "/data.tokens");
    ASSERT_TRUE(data.ok()) << data.status();
    data_ = *std::move(data);
  }

  SftBatch Batch(int64_t micro_batch_tokens, int examples = 12) const {
    std::vector<int64_t> indices(examples);
    std::iota(indices.begin(), indices.end(), 0);
    return MakeSftBatch(*data_, indices, 1024, micro_batch_tokens);
  }

  SftStepStats Step(const SftBatch& batch, SftLearner* learner) const {
    const auto stats = learner->Step(batch, 0);
    EXPECT_TRUE(stats.ok()) << stats.status();
    return stats.value_or(SftStepStats());
  }

  // The gradient of a batch at the initial weights, computed by the learner.
  at::Tensor LearnedGradient(const SftBatch& batch) const {
    GoToStart();
    AdamW optimizer(config_, policy_.weights);
    SftLearner learner(config_, 1, &policy_, &optimizer, ranks_.get());
    Step(batch, &learner);
    return optimizer.first_moment().clone();
  }

  // The same gradient by separate forward and backward passes, added to zeros.
  at::Tensor GradientByParts(const SftBatch& batch) const {
    GoToStart();
    Gradients gradients(*policy_.weights);
    const double scale = -1.0 / static_cast<double>(batch.response_tokens);
    for (const SftMicroBatch& micro : batch.micro_batches) {
      Activations saved;
      policy_.transformer->Forward(micro.batch, micro.targets, 1.0, &saved);
      policy_.transformer->Backward(saved, micro.targets.ge(0).to(at::kFloat).mul_(scale),
                                    &gradients);
    }
    return gradients.flat().clone();
  }

  OptimizerConfig config_;
  std::unique_ptr<TokenCache> data_;
};

TEST_F(SftLearnerTest, GradientHasTheBitsOfForwardThenBackward) {
  for (const int64_t budget : {60, 1 << 20}) {
    const SftBatch batch = Batch(budget);
    EXPECT_EQ(batch.micro_batches.size() > 1, budget == 60);
    const at::Tensor learned = LearnedGradient(batch);
    EXPECT_GT(learned.abs().max().item<float>(), 1e-5);
    EXPECT_TRUE(learned.equal(GradientByParts(batch))) << budget;
  }
}

TEST_F(SftLearnerTest, GradientIsTheSameInMicroBatchesUpToRounding) {
  const at::Tensor whole = LearnedGradient(Batch(1 << 20));
  for (const int64_t budget : {1, 60, 150}) {
    const double difference = LearnedGradient(Batch(budget)).sub(whole).norm().item<double>();
    EXPECT_LT(difference, 1e-5 * whole.norm().item<double>()) << budget;
    EXPECT_GT(difference, 0) << "there was one micro-batch only";
  }
}

TEST_F(SftLearnerTest, ABadGradientLeavesNoTraceInTheNext) {
  const SftBatch batch = Batch(60);
  const at::Tensor alone = LearnedGradient(batch);
  AdamW optimizer(config_, policy_.weights);
  SftLearner learner(config_, 1, &policy_, &optimizer, ranks_.get());
  at::Tensor(policy_.weights->flat()).fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(Step(batch, &learner).skipped);
  EXPECT_EQ(learner.consecutive_skipped(), 1);
  GoToStart();
  EXPECT_FALSE(Step(batch, &learner).skipped);
  EXPECT_TRUE(optimizer.first_moment().equal(alone));
}

// With policy.fp8 the gradient is near the exact one, and a non-finite gradient is detected.
TEST_F(SftLearnerTest, Fp8GemmsLearnNearlyTheSameAndSkipABadGradient) {
  const SftBatch batch = Batch(60);
  const at::Tensor exact = LearnedGradient(batch);
  PolicyConfig config = TinyPolicyConfig(dir_);
  config.set_fp8(true);
  auto policy = LoadPolicy(config, {.threads = 1});
  ASSERT_TRUE(policy.ok()) << policy.status();
  policy_ = *std::move(policy);
  ASSERT_TRUE(policy_.weights->flat().equal(start_));
  const at::Tensor rounded = LearnedGradient(batch);
  const double distance = rounded.sub(exact).norm().item<double>() / exact.norm().item<double>();
  EXPECT_GT(distance, 1e-3);
  EXPECT_LT(distance, 0.1);
  EXPECT_TRUE(LearnedGradient(batch).equal(rounded));

  AdamW optimizer(config_, policy_.weights);
  SftLearner learner(config_, 1, &policy_, &optimizer, ranks_.get());
  GoToStart();
  policy_.weights->Get("model.layers.1.mlp.down_proj.weight")
      .select(0, 3)
      .fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(Step(batch, &learner).skipped);
}

TEST_F(SftLearnerTest, EvaluationIsTheLossOfAStepAndLearnsNothing) {
  const SftBatch batch = Batch(60);
  AdamW optimizer(config_, policy_.weights);
  SftLearner learner(config_, 1, &policy_, &optimizer, ranks_.get());
  const auto loss = learner.EvaluateLoss(batch);
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_TRUE(policy_.weights->flat().equal(start_));
  EXPECT_EQ(Step(batch, &learner).loss, *loss);
  EXPECT_FALSE(policy_.weights->flat().equal(start_));
}

TEST_F(SftLearnerTest, AnEmptyBatchChangesNothing) {
  AdamW optimizer(config_, policy_.weights);
  SftLearner learner(config_, 1, &policy_, &optimizer, ranks_.get());
  EXPECT_TRUE(Step(SftBatch(), &learner).skipped);
  EXPECT_TRUE(policy_.weights->flat().equal(start_));
  EXPECT_EQ(optimizer.updates(), 0);
}

}  // namespace
}  // namespace tritonrl
