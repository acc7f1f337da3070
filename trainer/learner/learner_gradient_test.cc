// Checks that the optimizer receives exactly the sum of all micro-batches' gradients, whatever the
// buffer held before.
#include <cmath>
#include <limits>

#include "base/file.h"
#include "gtest/gtest.h"
#include "trainer/learner/learner.h"
#include "trainer/objective/advantage.h"
#include "trainer/objective/hrd_loss.h"
#include "trainer/objective/packing.h"
#include "trainer/testing/random_rl_batch.h"
#include "trainer/testing/tiny_policy_fixture.h"

namespace tritonrl {
namespace {

constexpr int64_t kOnePass = 1 << 20;

class LearnerGradientTest : public TinyPolicyFixture {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(TinyPolicyFixture::SetUp());
    options_.optimizer.set_clip_norm(0);
    options_.optimizer.set_beta1(0);  // makes the first moment equal to the gradient
    options_.objective.set_kl_coefficient(0.1);
    options_.temperature = 0.9;
  }

  RlBatch MakeBatch() const {
    RlBatch batch = RandomRlBatch(5, 4, 3);
    FillAdvantages(options_.objective, &batch);
    return batch;
  }

  // The gradient of a whole batch at the initial weights, computed by the learner.
  at::Tensor LearnedGradient(const RlBatch& batch, int64_t micro_batch_tokens) {
    GoToStart();
    options_.micro_batch_tokens = micro_batch_tokens;
    AdamW optimizer(options_.optimizer, policy_.weights);
    Learner learner(options_, &policy_, &optimizer, ranks_.get());
    const auto stats = learner.Learn(batch, 0);
    EXPECT_TRUE(stats.ok()) << stats.status();
    return optimizer.first_moment().clone();
  }

  // The same gradient by a forward pass, the loss of all rows, and a backward pass, added to zeros.
  at::Tensor GradientByParts(const RlBatch& batch, int64_t micro_batch_tokens) {
    GoToStart();
    std::vector<const RlSample*> all;
    std::vector<int64_t> lengths;
    for (const RlGroup& group : batch) {
      for (const RlSample& s : group.samples) {
        all.push_back(&s);
        lengths.push_back(s.length());
      }
    }
    Gradients gradients(*policy_.weights);
    for (const std::vector<int>& pack : PackByTokens(lengths, micro_batch_tokens)) {
      std::vector<const RlSample*> samples;
      for (const int i : pack) samples.push_back(all[i]);
      const std::vector<double> weights(pack.size(), 1.0 / 3 / static_cast<double>(batch.size()));
      const HrdMicroBatch micro =
          BuildHrdMicroBatch(options_.objective, samples, weights, policy_.device());
      Activations saved;
      const ForwardResult forward =
          policy_.transformer->Forward(micro.batch, micro.targets, options_.temperature, &saved);
      const HrdResult loss = HrdLoss(forward.log_probs, forward.entropy, micro.tokens,
                                     HrdSettingsFor(options_.objective));
      policy_.transformer->Backward(saved, loss.d_log_probs, &gradients);
    }
    return gradients.flat().clone();
  }

  LearnerOptions options_;
};

TEST_F(LearnerGradientTest, HasTheBitsOfForwardThenBackward) {
  const RlBatch batch = MakeBatch();
  for (const int64_t budget : {kOnePass, int64_t{60}}) {
    const at::Tensor learned = LearnedGradient(batch, budget);
    EXPECT_GT(learned.abs().max().item<float>(), 1e-5);
    EXPECT_TRUE(learned.equal(GradientByParts(batch, budget))) << budget;
  }
}

TEST_F(LearnerGradientTest, IsTheSameInMicroBatchesUpToRounding) {
  const RlBatch batch = MakeBatch();
  const at::Tensor whole = LearnedGradient(batch, kOnePass);
  for (const int64_t budget : {1, 60, 150}) {
    const at::Tensor pieces = LearnedGradient(batch, budget);
    const double difference = pieces.sub(whole).norm().item<double>();
    EXPECT_LT(difference, 1e-5 * whole.norm().item<double>()) << budget;
    EXPECT_GT(difference, 0) << "there was one micro-batch only";
  }
}

TEST_F(LearnerGradientTest, ABadGradientLeavesNoTraceInTheNext) {
  const RlBatch good = MakeBatch();
  RlBatch bad = good;
  for (RlGroup& group : bad) {
    for (RlSample& s : group.samples) {
      s.old_log_probs[1] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  // At least three micro-batches, so that the bad gradient is both written and accumulated.
  options_.micro_batch_tokens = 60;
  at::Tensor moments[2];
  for (const bool with_bad : {false, true}) {
    GoToStart();
    AdamW optimizer(options_.optimizer, policy_.weights);
    Learner learner(options_, &policy_, &optimizer, ranks_.get());
    if (with_bad) {
      const auto stats = learner.Learn(bad, 0);
      ASSERT_TRUE(stats.ok()) << stats.status();
      EXPECT_EQ(stats->skipped_steps, 1);
      EXPECT_FALSE(std::isfinite(stats->gradient_norm));
      EXPECT_TRUE(policy_.weights->flat().equal(start_));
    }
    const auto stats = learner.Learn(good, 1);
    ASSERT_TRUE(stats.ok()) << stats.status();
    EXPECT_EQ(stats->optimizer_steps, 1);
    EXPECT_FALSE(policy_.weights->flat().equal(start_));
    moments[with_bad ? 1 : 0] = optimizer.first_moment().clone();
  }
  EXPECT_TRUE(moments[0].equal(moments[1]));
}

}  // namespace
}  // namespace tritonrl
