#include "rollout/engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "base/random.h"

namespace tritonrl {
namespace {

std::vector<double> Softmax(const std::vector<float>& logits, double temperature) {
  std::vector<double> p;
  double sum = 0;
  for (float logit : logits) {
    p.push_back(std::exp(static_cast<double>(logit) / temperature));
    sum += p.back();
  }
  for (double& value : p) value /= sum;
  return p;
}

std::vector<float> RandomLogits(int size, double scale, uint64_t seed) {
  Philox random(seed);
  std::vector<float> logits;
  for (int i = 0; i < size; ++i) logits.push_back(static_cast<float>(scale * random.Normal()));
  return logits;
}

// Share of each token among the draws of `draws` evenly spaced uniform numbers. It equals the
// token's probability up to 1 / draws.
std::map<int32_t, double> Shares(const std::vector<float>& logits, const SamplingSettings& settings,
                                 int draws) {
  Sampler sampler;
  std::map<int32_t, double> shares;
  for (int i = 0; i < draws; ++i) {
    absl::StatusOr<TokenDraw> draw = sampler.Draw(logits, settings, (i + 0.5) / draws);
    EXPECT_TRUE(draw.ok()) << draw.status();
    shares[draw->token] += 1.0 / draws;
  }
  return shares;
}

TEST(Sampler, FollowsSoftmaxAtEachTemperature) {
  const std::vector<float> logits = RandomLogits(50, 2.0, 1);
  for (double temperature : {0.5, 1.0, 3.0}) {
    SamplingSettings settings;
    settings.temperature = temperature;
    const std::vector<double> p = Softmax(logits, temperature);
    std::map<int32_t, double> shares = Shares(logits, settings, 20000);
    for (int token = 0; token < 50; ++token) EXPECT_NEAR(shares[token], p[token], 1.1e-4);
  }
}

TEST(Sampler, LogProbIsOfTheWholeDistribution) {
  const std::vector<float> logits = RandomLogits(768, 4.0, 2);
  Sampler sampler;
  SamplingSettings settings;
  settings.temperature = 0.7;
  settings.top_k = 5;
  settings.top_p = 0.9;
  for (int i = 0; i < 20; ++i) {
    absl::StatusOr<TokenDraw> draw = sampler.Draw(logits, settings, i / 20.0);
    ASSERT_TRUE(draw.ok());
    EXPECT_NEAR(draw->log_prob, std::log(Softmax(logits, 0.7)[draw->token]), 1e-5);
  }
}

TEST(Sampler, GreedyTakesTheFirstLargest) {
  Sampler sampler;
  SamplingSettings settings;
  settings.temperature = 0;
  const std::vector<float> logits = {1.0f, 3.0f, -2.0f, 3.0f};
  for (double uniform : {0.0, 0.5, 0.999}) {
    absl::StatusOr<TokenDraw> draw = sampler.Draw(logits, settings, uniform);
    ASSERT_TRUE(draw.ok());
    EXPECT_EQ(draw->token, 1);
    EXPECT_NEAR(draw->log_prob, std::log(Softmax(logits, 1.0)[1]), 1e-6);
  }
}

TEST(Sampler, TopKKeepsTheLargest) {
  const std::vector<float> logits = {0.0f, 2.0f, 1.0f, 2.0f, -1.0f};
  SamplingSettings settings;
  settings.top_k = 3;
  std::map<int32_t, double> shares = Shares(logits, settings, 20000);
  ASSERT_EQ(shares.size(), 3u);
  const double sum = 2 * std::exp(2.0) + std::exp(1.0);
  EXPECT_NEAR(shares[1], std::exp(2.0) / sum, 1e-4);
  EXPECT_NEAR(shares[3], std::exp(2.0) / sum, 1e-4);
  EXPECT_NEAR(shares[2], std::exp(1.0) / sum, 1e-4);
  settings.top_k = 1;
  EXPECT_EQ(Shares(logits, settings, 100).begin()->first, 1);
  settings.top_k = 99;  // More than the five tokens.
  EXPECT_EQ(Shares(logits, settings, 20000).size(), 5u);
}

TEST(Sampler, TopPKeepsTheSmallestSetThatHoldsIt) {
  // Probabilities .5 .3 .15 .05.
  const std::vector<float> logits = {std::log(0.15f), std::log(0.5f), std::log(0.05f),
                                     std::log(0.3f)};
  SamplingSettings settings;
  const std::vector<std::pair<double, std::set<int32_t>>> cases = {
      {0.01, {1}},    {0.49, {1}},       {0.51, {1, 3}},
      {0.79, {1, 3}}, {0.81, {0, 1, 3}}, {0.96, {0, 1, 2, 3}}};
  for (const auto& [top_p, kept] : cases) {
    settings.top_p = top_p;
    std::set<int32_t> seen;
    for (const auto& [token, share] : Shares(logits, settings, 1000)) seen.insert(token);
    EXPECT_EQ(seen, kept) << top_p;
  }
  settings.top_p = 0.51;
  EXPECT_NEAR(Shares(logits, settings, 20000)[1], 0.5 / 0.8, 1e-4);
  // top_p applies after top_k: of .5 and .3 (renormalised .625 and .375) top_p 0.6 keeps one.
  settings.top_k = 2;
  settings.top_p = 0.6;
  EXPECT_EQ(Shares(logits, settings, 1000).size(), 1u);
}

TEST(Sampler, NeverDrawsWhatHasNoProbability) {
  std::vector<float> logits(100, -std::numeric_limits<float>::infinity());
  // Log-probability of a masked token would be -inf; masked logits are not supported.
  Sampler sampler;
  EXPECT_EQ(sampler.Draw(logits, {}, 0.5).status().code(), absl::StatusCode::kInternal);
  for (float& logit : logits) logit = -200.0f;
  logits[40] = 0.0f;
  for (double uniform : {0.0, 0.5, 1.0 - 1e-16}) {
    absl::StatusOr<TokenDraw> draw = sampler.Draw(logits, {}, uniform);
    ASSERT_TRUE(draw.ok()) << draw.status();
    EXPECT_EQ(draw->token, 40);
  }
}

TEST(Sampler, DamagedLogitsAreAnError) {
  Sampler sampler;
  for (int place : {0, 3, 99}) {
    std::vector<float> logits = RandomLogits(100, 1.0, 3);
    logits[place] = std::nanf("");
    EXPECT_EQ(sampler.Draw(logits, {}, 0.5).status().code(), absl::StatusCode::kInternal) << place;
    logits[place] = std::numeric_limits<float>::infinity();
    EXPECT_EQ(sampler.Draw(logits, {}, 0.5).status().code(), absl::StatusCode::kInternal) << place;
  }
}

TEST(Sampler, ExtremeUniformNumbersGiveTheEnds) {
  Sampler sampler;
  const std::vector<float> logits(768, 1.0f);
  EXPECT_EQ(sampler.Draw(logits, {}, 0.0)->token, 0);
  EXPECT_EQ(sampler.Draw(logits, {}, 1.0 - 1e-16)->token, 767);
}

TEST(TokenUniform, DiffersByEachPartOfTheKey) {
  const SampleKey key = {.run_seed = 1, .step = 2, .task = 3};
  const std::set<double> values = {TokenUniform(key, 0, 0),       TokenUniform(key, 1, 0),
                                   TokenUniform(key, 0, 1),       TokenUniform({2, 2, 3}, 0, 0),
                                   TokenUniform({1, 3, 3}, 0, 0), TokenUniform({1, 2, 4}, 0, 0)};
  EXPECT_EQ(values.size(), 6u);
  EXPECT_EQ(TokenUniform(key, 5, 7), TokenUniform(key, 5, 7));
  double sum = 0;
  for (int position = 0; position < 10000; ++position) sum += TokenUniform(key, 0, position);
  EXPECT_NEAR(sum / 10000, 0.5, 0.012);  // Four standard deviations.
}

TEST(ValidateSampling, NamesTheFieldOutOfRange) {
  const auto says = [](SamplingSettings settings, const char* field) {
    const absl::Status status = ValidateSampling(settings);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(field), absl::string_view::npos) << status;
  };
  EXPECT_TRUE(ValidateSampling({}).ok());
  says({.temperature = -1}, "temperature");
  says({.temperature = std::nan("")}, "temperature");
  says({.top_p = 0}, "top_p");
  says({.top_p = 1.5}, "top_p");
  says({.top_k = -1}, "top_k");
  says({.max_tokens = 0}, "max_tokens");
}

}  // namespace
}  // namespace tritonrl
