#include "trainer/learner/log_probs.h"

#include <cmath>

#include "base/file.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "model/layers/packed_batch.h"
#include "trainer/testing/test_model.h"

namespace tritonrl {
namespace {

constexpr double kTemperature = 0.8;

std::vector<int32_t> RandomTokens(Philox* random, int n) {
  std::vector<int32_t> tokens(n);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random->Below(256));
  return tokens;
}

// Three prompts with two responses each, all of different lengths.
RlBatch MakeBatch() {
  Philox random(5);
  RlBatch batch(3);
  for (int g = 0; g < 3; ++g) {
    for (int j = 0; j < 2; ++j) {
      RlSample& sample = batch[g].samples.emplace_back();
      sample.prompt = RandomTokens(&random, 4 + 3 * g);
      sample.response = RandomTokens(&random, 1 + 5 * j + g);
    }
  }
  return batch;
}

// Log-probabilities of one response from a forward pass over that sequence alone.
std::vector<float> Alone(const Policy& policy, const RlSample& sample) {
  std::vector<int32_t> tokens = sample.prompt;
  tokens.insert(tokens.end(), sample.response.begin(), sample.response.end());
  const PackedBatch packed = PackSequences({tokens}, policy.device());
  const at::Tensor log_probs =
      policy.transformer->Forward(packed, NextTokenTargets(packed), kTemperature, nullptr)
          .log_probs;
  const float* values = log_probs.const_data_ptr<float>() + sample.prompt.size() - 1;
  return {values, values + sample.response.size()};
}

class ReferencePolicyTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto dir = MakeTempDirectory("reference_policy");
    ASSERT_TRUE(dir.ok());
    dir_ = *dir;
    policy_ = LoadTinyPolicy(dir_);
  }
  void TearDown() override { RemoveTree(dir_).IgnoreError(); }

  std::string dir_;
  Policy policy_;
};

TEST_F(ReferencePolicyTest, GivesEachResponseItsLogProbabilitiesWhateverThePacking) {
  for (const int64_t micro_batch : {1, 20, 1000}) {
    const ReferencePolicy reference(policy_, 1, micro_batch, kTemperature);
    RlBatch batch = MakeBatch();
    ASSERT_TRUE(reference.Fill(&batch).ok());
    for (const RlGroup& group : batch) {
      for (const RlSample& sample : group.samples) {
        const std::vector<float> want = Alone(policy_, sample);
        ASSERT_EQ(sample.reference_log_probs.size(), want.size());
        for (size_t t = 0; t < want.size(); ++t) {
          EXPECT_NEAR(sample.reference_log_probs[t], want[t], 1e-5) << "token " << t;
        }
      }
    }
  }
}

TEST_F(ReferencePolicyTest, StaysWhereTheRunStarted) {
  const ReferencePolicy reference(policy_, 1, 1000, kTemperature);
  RlBatch before = MakeBatch(), after = MakeBatch();
  ASSERT_TRUE(reference.Fill(&before).ok());
  policy_.weights->flat().mul_(1.5);
  ASSERT_TRUE(reference.Fill(&after).ok());
  EXPECT_EQ(after[1].samples[1].reference_log_probs, before[1].samples[1].reference_log_probs);
  EXPECT_GT(
      std::abs(Alone(policy_, after[1].samples[1])[0] - after[1].samples[1].reference_log_probs[0]),
      1e-4);
}

TEST_F(ReferencePolicyTest, LeavesOutSamplesThatDoNotCount) {
  const ReferencePolicy reference(policy_, 1, 1000, kTemperature);
  RlBatch batch = MakeBatch();
  batch[0].samples[0].counted = false;
  ASSERT_TRUE(reference.Fill(&batch).ok());
  EXPECT_TRUE(batch[0].samples[0].reference_log_probs.empty());
  EXPECT_FALSE(batch[0].samples[1].reference_log_probs.empty());
}

}  // namespace
}  // namespace tritonrl
