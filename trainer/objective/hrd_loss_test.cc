#include "trainer/objective/hrd_loss.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace tritonrl {
namespace {

at::Tensor Row(std::vector<float> values) {
  return at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kFloat).clone();
}

struct Case {
  std::vector<float> ratio, advantage, weight;
};

HrdResult LossOf(const Case& c, double epsilon) {
  std::vector<float> log_probs;
  for (const float s : c.ratio) log_probs.push_back(std::log(s) - 1);
  HrdTokens tokens;
  tokens.old_log_probs = Row(std::vector<float>(c.ratio.size(), -1));
  tokens.advantage = Row(c.advantage);
  tokens.weight = Row(c.weight);
  tokens.mask = Row(std::vector<float>(c.ratio.size(), 1));
  tokens.current = tokens.mask;
  return HrdLoss(Row(log_probs), Row(std::vector<float>(c.ratio.size(), 0.5)), tokens,
                 {.epsilon = epsilon});
}

std::vector<float> Values(const at::Tensor& t) {
  const at::Tensor f = t.to(at::kFloat).contiguous();
  return {f.const_data_ptr<float>(), f.const_data_ptr<float>() + f.numel()};
}

double Statistic(const HrdResult& result, HrdStatistic which) {
  return result.statistics[which].item<double>();
}

TEST(HrdLoss, MatchesNumbersByHand) {
  // epsilon 0.2. One line per case of the clipped objective:
  //   s 1.0, A 2: inside            J = 2.0          dJ = A s = 2
  //   s 1.5, A 2: above, clipped    J = 2 * 1.2      dJ = 0
  //   s 1.5, A -2: above, A < 0     J = -2 * 1.5     dJ = -3 (the min takes the unclipped term)
  //   s 0.5, A 2: below             J = 2 * 0.5      dJ = 1
  //   s 0.5, A -2: below, A < 0     J = -2 * 0.8     dJ = 0
  const Case c = {{1.0, 1.5, 1.5, 0.5, 0.5}, {2, 2, -2, 2, -2}, {1, 1, 1, 1, 1}};
  const HrdResult result = LossOf(c, 0.2);
  EXPECT_NEAR(Statistic(result, kLossSum), -(2.0 + 2.4 - 3.0 + 1.0 - 1.6), 1e-6);
  const std::vector<float> wanted = {-2, 0, 3, -1, 0};
  const std::vector<float> got = Values(result.d_log_probs);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-6) << i;
  EXPECT_EQ(Statistic(result, kTokenCount), 5);
  EXPECT_EQ(Statistic(result, kClippedCount), 2);
  EXPECT_NEAR(Statistic(result, kRatioSum), 5.0, 1e-6);
  EXPECT_NEAR(Statistic(result, kEntropySum), 2.5, 1e-6);
  EXPECT_NEAR(Statistic(result, kMaxLogProbDiff), std::log(2.0), 1e-6);
}

TEST(HrdLoss, ImportanceWeightsAreTruncatedAndNotDerived) {
  // pi_old is e^-1, epsilon 0.2, cap 1.5. One line per case:
  //   pi_prox / pi_old 2.0 -> 1.5, s 1.1, A 2    J = 1.5 * 2.2        dJ the same
  //   pi_prox / pi_old 0.5,        s 1.5, A 2    J = 0.5 * 2 * 1.2    dJ = 0 (clipped)
  //   pi_prox / pi_old 0.5,        s 1.5, A -2   J = 0.5 * -2 * 1.5   dJ the same
  const std::vector<double> proximal = {2.0, 0.5, 0.5}, s = {1.1, 1.5, 1.5};
  std::vector<float> log_probs, log_proximal;
  for (int i = 0; i < 3; ++i) {
    log_proximal.push_back(static_cast<float>(std::log(proximal[i]) - 1));
    log_probs.push_back(static_cast<float>(std::log(proximal[i] * s[i]) - 1));
  }
  HrdTokens tokens;
  tokens.old_log_probs = Row({-1, -1, -1});
  tokens.advantage = Row({2, 2, -2});
  tokens.weight = Row({1, 1, 1});
  tokens.mask = Row({1, 1, 1});
  tokens.current = Row({0, 1, 1});
  tokens.proximal_log_probs = Row(log_proximal);
  const at::Tensor entropy = Row({0, 0, 0});
  const HrdResult result =
      HrdLoss(Row(log_probs), entropy, tokens, {.importance_sampling_cap = 1.5});
  EXPECT_NEAR(Statistic(result, kLossSum), -(3.3 + 1.2 - 1.5), 1e-6);
  std::vector<float> got = Values(result.d_log_probs);
  EXPECT_NEAR(got[0], -3.3, 1e-6);
  EXPECT_NEAR(got[1], 0, 1e-6);
  EXPECT_NEAR(got[2], 1.5, 1e-6);
  EXPECT_NEAR(Statistic(result, kImportanceSum), 2.5, 1e-6);
  EXPECT_EQ(Statistic(result, kTruncatedCount), 1);
  EXPECT_NEAR(Statistic(result, kRatioSum), 4.1, 1e-6);
  EXPECT_NEAR(Statistic(result, kMaxLogProbDiff), -std::log(0.75), 1e-6) << "the first is stale";

  // In the only update on a batch pi_prox is pi, so s is 1 and pi / pi_old (2.2, 0.75) is the
  // weight.
  tokens.proximal_log_probs = at::Tensor();
  const HrdResult only = HrdLoss(Row(log_probs), entropy, tokens, {.importance_sampling_cap = 1.5});
  got = Values(only.d_log_probs);
  EXPECT_NEAR(got[0], -2 * 1.5, 1e-6);
  EXPECT_NEAR(got[1], -2 * 0.75, 1e-6);
  EXPECT_NEAR(got[2], 2 * 0.75, 1e-6);
  EXPECT_EQ(Statistic(only, kClippedCount), 0);
}

TEST(HrdLoss, WeightsEachTokenByItsClass) {
  // One response of four tokens, two plan (alpha .1), two code, in a group of two, one prompt:
  // w_plan = .1 / (4 * 2), w_code = 1 / (4 * 2).
  const Case c = {{1, 1, 1, 1}, {1.5, 1.5, -0.5, -0.5}, {0.0125, 0.0125, 0.125, 0.125}};
  const HrdResult result = LossOf(c, 0.2);
  EXPECT_NEAR(Statistic(result, kLossSum), -(2 * 0.0125 * 1.5 - 2 * 0.125 * 0.5), 1e-7);
  const std::vector<float> got = Values(result.d_log_probs);
  EXPECT_NEAR(got[0], -0.0125 * 1.5, 1e-7);
  EXPECT_NEAR(got[3], 0.125 * 0.5, 1e-7);
}

TEST(HrdLoss, RowsWithoutATokenHaveNoPart) {
  HrdTokens tokens;
  tokens.old_log_probs = Row({0, -1});
  tokens.advantage = Row({0, 1});
  tokens.weight = Row({0, 1});
  tokens.mask = Row({0, 1});
  tokens.current = tokens.mask;
  const HrdResult result = HrdLoss(Row({-30, -1}), Row({0, 1}), tokens, {});
  EXPECT_EQ(Values(result.d_log_probs), (std::vector<float>{-0.0f, -1}));
  EXPECT_EQ(Statistic(result, kTokenCount), 1);
  EXPECT_EQ(Statistic(result, kMaxLogProbDiff), 0);
}

TEST(HrdLoss, GradientMatchesFiniteDifferences) {
  // Random tokens on both sides of the clip, with KL penalty; ratios near a kink of the clip are
  // moved away from it.
  Philox random(3);
  const int n = 200;
  const double epsilon = 0.2, kl = 0.3, h = 1e-3;
  std::vector<float> log_probs, old_log_probs, advantage, weight, reference;
  for (int i = 0; i < n; ++i) {
    const double old = -3 * random.Uniform();
    double ratio = std::exp(0.5 * random.Normal());
    for (const double kink : {1 - epsilon, 1 + epsilon}) {
      if (std::abs(ratio - kink) < 0.02) ratio += 0.05;
    }
    old_log_probs.push_back(static_cast<float>(old));
    log_probs.push_back(static_cast<float>(old + std::log(ratio)));
    advantage.push_back(static_cast<float>(random.Normal()));
    weight.push_back(static_cast<float>(0.1 + random.Uniform()));
    reference.push_back(static_cast<float>(old + 0.3 * random.Normal()));
  }
  HrdTokens tokens;
  tokens.old_log_probs = Row(old_log_probs);
  tokens.advantage = Row(advantage);
  tokens.weight = Row(weight);
  tokens.mask = Row(std::vector<float>(n, 1));
  tokens.current = tokens.mask;
  tokens.reference_log_probs = Row(reference);
  tokens.kl_weight = Row(std::vector<float>(n, 0.7));
  const at::Tensor entropy = at::zeros({n}, at::kFloat);
  const HrdSettings settings = {.epsilon = epsilon, .kl_coefficient = kl};
  const auto loss = [&](const std::vector<float>& values) {
    return Statistic(HrdLoss(Row(values), entropy, tokens, settings), kLossSum);
  };
  const std::vector<float> gradient =
      Values(HrdLoss(Row(log_probs), entropy, tokens, settings).d_log_probs);
  int nonzero = 0;
  for (int i = 0; i < n; ++i) {
    std::vector<float> up = log_probs, down = log_probs;
    up[i] += h;
    down[i] -= h;
    const double numeric = (loss(up) - loss(down)) / (static_cast<double>(up[i]) - down[i]);
    EXPECT_NEAR(gradient[i], numeric, 3e-3 * (1 + std::abs(numeric))) << i;
    nonzero += std::abs(gradient[i]) > 1e-3 ? 1 : 0;
  }
  EXPECT_GT(nonzero, n / 2);
}

TEST(HrdLoss, RunsOfRowsGiveTheWhole) {
  // Every third row has no token. The other rows are processed 7 at a time, as by a head with
  // chunks.
  Philox random(8);
  const int64_t n = 50;
  std::vector<float> columns[8];
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < n; ++i) {
    const bool token = i % 3 != 0;
    if (token) rows.push_back(i);
    for (auto& column : columns) {
      column.push_back(token ? static_cast<float>(random.Normal()) : 0.0F);
    }
    columns[3].back() = token ? 1.0F : 0.0F;
  }
  const HrdTokens tokens = {.old_log_probs = Row(columns[0]),
                            .advantage = Row(columns[1]),
                            .weight = Row(columns[2]),
                            .mask = Row(columns[3]),
                            .reference_log_probs = Row(columns[4]),
                            .kl_weight = Row(columns[5]),
                            .current = Row(columns[3]),
                            .proximal_log_probs = Row(columns[7])};
  const HrdSettings settings = {.kl_coefficient = 0.3, .importance_sampling_cap = 2};
  const at::Tensor log_probs = Row(columns[6]), entropy = Row(columns[5]);
  const HrdResult whole = HrdLoss(log_probs, entropy, tokens, settings);

  std::vector<double> statistics(kNumHrdStatistics, 0.0);
  for (size_t begin = 0; begin < rows.size(); begin += 7) {
    const size_t end = std::min(rows.size(), begin + 7);
    const at::Tensor run = at::zeros({static_cast<int64_t>(end - begin)}, at::kLong);
    std::copy(rows.begin() + begin, rows.begin() + end, run.mutable_data_ptr<int64_t>());
    const HrdResult part = HrdLoss(log_probs.index_select(0, run), entropy.index_select(0, run),
                                   SelectRows(tokens, run), settings);
    EXPECT_TRUE(part.d_log_probs.equal(whole.d_log_probs.index_select(0, run)));
    for (int k = 0; k < kMaxLogProbDiff; ++k) {
      statistics[k] += Statistic(part, static_cast<HrdStatistic>(k));
    }
    statistics[kMaxLogProbDiff] =
        std::max(statistics[kMaxLogProbDiff], Statistic(part, kMaxLogProbDiff));
  }
  for (int k = 0; k < kNumHrdStatistics; ++k) {
    EXPECT_NEAR(statistics[k], Statistic(whole, static_cast<HrdStatistic>(k)), 1e-9) << k;
  }
  EXPECT_EQ(statistics[kTokenCount], static_cast<double>(rows.size()));
  HrdTokens without_kl = tokens;
  without_kl.kl_weight = at::Tensor();
  EXPECT_FALSE(SelectRows(without_kl, at::zeros({1}, at::kLong)).kl_weight.defined());
}

TEST(HrdLoss, StaysFiniteForAHugeRatio) {
  HrdTokens tokens;
  tokens.old_log_probs = Row({-200, 0});
  tokens.advantage = Row({-1, 1});
  tokens.weight = Row({1, 1});
  tokens.mask = Row({1, 1});
  tokens.current = tokens.mask;
  const HrdResult result = HrdLoss(Row({0, -200}), Row({0, 0}), tokens, {});
  for (const float g : Values(result.d_log_probs)) EXPECT_TRUE(std::isfinite(g));
  EXPECT_TRUE(std::isfinite(Statistic(result, kLossSum)));
}

}  // namespace
}  // namespace tritonrl
