#include "rollout/engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>
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

// The distribution that all settings describe, in double.
std::vector<double> Reference(const std::vector<float>& logits, const SamplingSettings& settings,
                              const TokenHistory& history) {
  std::vector<double> z(logits.begin(), logits.end());
  for (const auto& [token, bias] : settings.logit_bias) z[token] += bias;
  std::set<int32_t> seen(history.prompt.begin(), history.prompt.end());
  seen.insert(history.generated.begin(), history.generated.end());
  for (const int32_t token : seen) {
    z[token] *= z[token] > 0 ? 1 / settings.repetition_penalty : settings.repetition_penalty;
  }
  std::map<int32_t, int> counts;
  for (const int32_t token : history.generated) ++counts[token];
  for (const auto& [token, count] : counts) {
    z[token] -= settings.frequency_penalty * count + settings.presence_penalty;
  }
  std::vector<double> p = Softmax({z.begin(), z.end()}, settings.temperature);
  const auto keep = [&p](const auto& kept) {
    double sum = 0;
    for (size_t i = 0; i < p.size(); ++i) sum += p[i] = kept(i) ? p[i] : 0;
    for (double& value : p) value /= sum;
  };
  const double least = settings.min_p * *std::max_element(p.begin(), p.end());
  keep([&](size_t i) { return p[i] >= least; });
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&p](size_t a, size_t b) { return p[a] > p[b]; });
  std::vector<size_t> place(p.size());
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  if (settings.top_k > 0) {
    keep([&](size_t i) { return place[i] < static_cast<size_t>(settings.top_k); });
  }
  double sum = 0;
  size_t kept = 0;
  while (kept < order.size() && (kept == 0 || sum < settings.top_p)) sum += p[order[kept++]];
  if (settings.top_p < 1) keep([&](size_t i) { return place[i] < kept; });
  return p;
}

TEST(Sampler, AllSettingsTogetherFollowTheDenseReference) {
  const std::vector<int32_t> prompt = {3, 4, 4, 40, 9}, generated = {7, 9, 7, 7, 41};
  const TokenHistory history = {prompt, generated};
  Philox random(17);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const std::vector<float> logits = RandomLogits(48, 2.0, 100 + round);
    SamplingSettings settings;
    settings.temperature = 0.5 + random.Uniform();
    if (random.Below(2) == 0) settings.min_p = 0.2 * random.Uniform();
    if (random.Below(2) == 0) settings.presence_penalty = 4 * random.Uniform() - 2;
    if (random.Below(2) == 0) settings.frequency_penalty = 4 * random.Uniform() - 2;
    if (random.Below(2) == 0) settings.repetition_penalty = 0.5 + 2 * random.Uniform();
    if (random.Below(2) == 0) settings.logit_bias = {{7, 2.5f}, {0, -100.0f}, {20, 1.0f}};
    if (random.Below(2) == 0) settings.top_k = 1 + static_cast<int>(random.Below(20));
    if (random.Below(2) == 0) settings.top_p = 0.3 + 0.7 * random.Uniform();
    ASSERT_TRUE(ValidateSampling(settings).ok());
    const std::vector<double> p = Reference(logits, settings, history);
    const std::vector<double> own = Softmax(logits, settings.temperature);
    constexpr int kDraws = 4000;
    Sampler sampler;
    std::vector<double> shares(p.size());
    for (int i = 0; i < kDraws; ++i) {
      const auto draw = sampler.Draw(logits, settings, (i + 0.5) / kDraws, history);
      ASSERT_TRUE(draw.ok()) << draw.status();
      shares[draw->token] += 1.0 / kDraws;
      ASSERT_NEAR(draw->log_prob, std::log(own[draw->token]), 1e-5) << "the model's own";
    }
    for (size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(shares[i], p[i], 2.0 / kDraws);
  }
}

TEST(Sampler, PenaltiesAndBiasesDecideGreedyDraws) {
  const std::vector<float> logits = {2.0f, 1.5f, -1.0f, 0.5f};
  Sampler sampler;
  SamplingSettings settings;
  settings.temperature = 0;
  const std::vector<int32_t> none, first = {0}, twice = {0, 0};
  const auto draw = [&](std::span<const int32_t> prompt, std::span<const int32_t> generated) {
    return sampler.Draw(logits, settings, 0.5, {prompt, generated})->token;
  };
  settings.presence_penalty = 0.6;
  EXPECT_EQ(draw(none, first), 1);
  EXPECT_EQ(draw(first, none), 0) << "the prompt does not count";
  settings.presence_penalty = 0;
  settings.frequency_penalty = 0.3;
  EXPECT_EQ(draw(none, first), 0);
  EXPECT_EQ(draw(none, twice), 1) << "0 was drawn twice";
  settings.frequency_penalty = 0;
  settings.repetition_penalty = 1.5;
  EXPECT_EQ(draw(first, none), 1) << "the prompt counts";
  settings.repetition_penalty = 1;
  settings.logit_bias = {{2, 3.5f}};
  EXPECT_EQ(draw(none, none), 2);
  EXPECT_NEAR(sampler.Draw(logits, settings, 0.5)->log_prob, std::log(Softmax(logits, 1.0)[2]),
              1e-6);
  settings.min_p = 1;
  EXPECT_EQ(draw(none, none), 2);
}

TEST(Sampler, TheHistoryChangesNothingWithoutPenalties) {
  const std::vector<float> logits = RandomLogits(300, 2.0, 4);
  const std::vector<int32_t> tokens = {1, 2, 2, 299};
  Sampler one, other;
  for (int i = 0; i < 100; ++i) {
    SamplingSettings settings;
    settings.temperature = i % 3 == 0 ? 0 : 0.9;
    if (i % 2 == 0) settings.top_p = 0.8;
    const TokenDraw plain = *one.Draw(logits, settings, i / 100.0);
    const TokenDraw with = *other.Draw(logits, settings, i / 100.0, {tokens, tokens});
    EXPECT_EQ(plain.token, with.token);
    EXPECT_EQ(plain.log_prob, with.log_prob) << "to the bit";
  }
}

TEST(Sampler, LogProbsOfAPosition) {
  std::vector<float> logits = RandomLogits(64, 3.0, 6);
  logits[9] = logits[33] = 20;
  const std::vector<double> p = Softmax(logits, 1.0);
  Sampler sampler;
  for (const int32_t token : {0, 9, 33, 63}) {
    const TokenLogProbs found = sampler.LogProbs(logits, token, 5).value();
    EXPECT_EQ(found.token.token, token);
    EXPECT_NEAR(found.token.log_prob, std::log(p[token]), 1e-5);
    EXPECT_EQ(found.rank, 1 + std::count_if(logits.begin(), logits.end(),
                                            [&](float z) { return z > logits[token]; }));
    ASSERT_EQ(found.top.size(), 5u);
    EXPECT_EQ(found.top[0].token, 9) << "of equal tokens the lower id";
    EXPECT_EQ(found.top[1].token, 33);
    for (size_t k = 0; k < 5; ++k) {
      EXPECT_NEAR(found.top[k].log_prob, std::log(p[found.top[k].token]), 1e-5);
      EXPECT_LE(found.top[k].log_prob, found.top[k == 0 ? 0 : k - 1].log_prob);
    }
    const TokenDraw draw = *sampler.Draw(logits, {}, 0.3);
    EXPECT_EQ(sampler.LogProbs(logits, draw.token, 0)->token.log_prob, draw.log_prob)
        << "to the bit";
  }
  EXPECT_EQ(sampler.LogProbs(std::vector<float>{1, 2}, 0, 20)->top.size(), 2u);
  logits[5] = std::nanf("");
  EXPECT_EQ(sampler.LogProbs(logits, 0, 1).status().code(), absl::StatusCode::kInternal);
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
  says({.min_p = -0.1}, "min_p is");
  says({.min_p = 1.1}, "min_p is");
  says({.presence_penalty = 2.1}, "presence_penalty is");
  says({.frequency_penalty = -2.1}, "frequency_penalty is");
  says({.repetition_penalty = 0}, "repetition_penalty is");
  says({.repetition_penalty = std::nan("")}, "repetition_penalty is");
  says({.logit_bias = {{3, 101.0f}}}, "logit_bias");
  says({.logit_bias = {{3, 1.0f}, {3, 2.0f}}}, "logit_bias has token 3 twice");
  SamplingSettings many;
  for (int i = 0; i < 1025; ++i) many.logit_bias.emplace_back(i, 1.0f);
  says(many, "logit_bias has 1025 tokens");
}

}  // namespace
}  // namespace tritonrl
