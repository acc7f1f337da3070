#include "rollout/cuda/gather_log_probs.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "rollout/engine/sampler.h"

namespace tritonrl {
namespace {

at::Tensor RandomLogits(int64_t rows, int64_t vocab) {
  const at::Tensor logits = at::empty({rows, vocab}, at::kFloat);
  Philox random(5);
  float* values = logits.data_ptr<float>();
  for (int64_t i = 0; i < rows * vocab; ++i) values[i] = static_cast<float>(3 * random.Normal());
  return logits;
}

TEST(GatherLogProbs, AgreesWithTheSampler) {
  constexpr int kRows = 17, kVocab = 300;
  const at::Tensor logits = RandomLogits(kRows, kVocab);
  std::vector<int32_t> tokens;
  for (int row = 0; row < kRows; ++row) tokens.push_back(row * 17 % kVocab);
  Sampler sampler;
  for (const int top : {0, 1, 20}) {
    const std::vector<TokenLogProbs> found = GatherLogProbs(logits, tokens, top);
    ASSERT_EQ(found.size(), kRows);
    for (int row = 0; row < kRows; ++row) {
      const std::span<const float> own(logits.const_data_ptr<float>() + row * kVocab, kVocab);
      const TokenLogProbs expected = sampler.LogProbs(own, tokens[row], top).value();
      EXPECT_EQ(found[row].token.token, tokens[row]);
      EXPECT_NEAR(found[row].token.log_prob, expected.token.log_prob, 2e-6);
      EXPECT_EQ(found[row].rank, expected.rank);
      ASSERT_EQ(found[row].top.size(), top);
      for (int k = 0; k < top; ++k) {
        EXPECT_EQ(found[row].top[k].token, expected.top[k].token);
        EXPECT_NEAR(found[row].top[k].log_prob, expected.top[k].log_prob, 2e-6);
      }
    }
  }
}

TEST(GatherLogProbs, EqualTokensAreInTheOrderOfIds) {
  const at::Tensor logits = RandomLogits(1, 8);
  float* values = logits.data_ptr<float>();
  for (const int token : {1, 4, 6}) values[token] = 50;
  const std::vector<TokenLogProbs> found = GatherLogProbs(logits, std::vector<int32_t>{4}, 3);
  EXPECT_EQ(found[0].rank, 1) << "no token is more likely";
  EXPECT_EQ(found[0].top[0].token, 1);
  EXPECT_EQ(found[0].top[1].token, 4);
  EXPECT_EQ(found[0].top[2].token, 6);
  EXPECT_EQ(found[0].top[0].log_prob, found[0].token.log_prob) << "to the bit";
}

TEST(GatherLogProbs, MoreAlternativesThanTokensAndNoRows) {
  EXPECT_EQ(GatherLogProbs(RandomLogits(1, 4), std::vector<int32_t>{0}, 20)[0].top.size(), 4u);
  EXPECT_TRUE(GatherLogProbs(at::empty({0, 4}, at::kFloat), {}, 5).empty());
  EXPECT_ANY_THROW(GatherLogProbs(RandomLogits(2, 4), std::vector<int32_t>{0}, 1));
}

TEST(GatherLogProbs, DamagedLogitsGiveNaN) {
  const at::Tensor logits = RandomLogits(2, 6);
  logits.data_ptr<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<TokenLogProbs> found = GatherLogProbs(logits, std::vector<int32_t>{1, 1}, 0);
  EXPECT_TRUE(std::isnan(found[0].token.log_prob));
  EXPECT_TRUE(std::isfinite(found[1].token.log_prob));
}

}  // namespace
}  // namespace tritonrl
