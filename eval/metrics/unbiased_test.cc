// The unbiased estimator is the mean over all choices of k samples, which are enumerated here.

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "eval/metrics/scores.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tritonrl {
namespace {

using ::testing::ElementsAre;

// All subsets of `values` with k elements: the maximum of each.
std::vector<double> MaximaOfSubsets(const std::vector<double>& values, int k) {
  std::vector<double> maxima;
  for (unsigned subset = 0; subset < 1u << values.size(); ++subset) {
    if (__builtin_popcount(subset) != k) continue;
    double maximum = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      if (subset >> i & 1) maximum = std::max(maximum, values[i]);
    }
    maxima.push_back(maximum);
  }
  return maxima;
}

// Speedups of random samples, 0 for those that are not correct. Some are equal.
std::vector<double> RandomSpeedups(int count, const std::string& task, Philox* random,
                                   std::vector<ScoredSample>* samples) {
  std::vector<double> speedups;
  for (int i = 0; i < count; ++i) {
    const double speedup =
        random->Below(3) == 0 ? 0 : 0.5 * static_cast<double>(1 + random->Below(7));
    ScoredSample sample = {.task = task, .sample = i, .failure = FailureKind::kIncorrect};
    if (speedup > 0) sample.failure = FailureKind::kCorrect;
    sample.score = {.correct = speedup > 0, .speedup = speedup, .speedup_low = speedup};
    samples->push_back(sample);
    speedups.push_back(speedup);
  }
  return speedups;
}

std::vector<double> AboveOne(std::vector<double> speedups) {
  for (double& speedup : speedups) speedup = speedup > 1;
  return speedups;
}

TEST(UnbiasedTest, IsTheMeanOverAllSubsets) {
  Philox random(2);
  for (int n = 1; n <= 8; ++n) {
    for (int k = 1; k <= n; ++k) {
      std::vector<ScoredSample> samples;
      const std::vector<double> speedups = RandomSpeedups(n, "t", &random, &samples);
      const auto expect_mean = [&](Metric metric, const std::vector<double>& values) {
        const std::vector<double> maxima = MaximaOfSubsets(values, k);
        double sum = 0;
        for (const double maximum : maxima) sum += maximum;
        const auto series = PerTask(samples, metric, Estimator::kUnbiased, k, Shapes::kApart);
        EXPECT_NEAR(series.value().values[0], sum / maxima.size(), 1e-12) << n << " " << k;
      };
      expect_mean(Metric::kMeanSpeedup, speedups);
      expect_mean(Metric::kFast1, AboveOne(speedups));
    }
  }
}

TEST(UnbiasedTest, WithShapesIsTheMeanOverSubsetsOfEach) {
  Philox random(3);
  for (int n = 1; n <= 6; ++n) {
    for (int k = 1; k <= n; ++k) {
      std::vector<ScoredSample> samples;
      const std::vector<double> first = RandomSpeedups(n, "t_v1", &random, &samples);
      const std::vector<double> second = RandomSpeedups(6, "t_v2", &random, &samples);
      const auto expect_mean = [&](Metric metric, const std::vector<double>& a,
                                   const std::vector<double>& b) {
        double sum = 0;
        int count = 0;
        for (const double of_a : MaximaOfSubsets(a, k)) {
          for (const double of_b : MaximaOfSubsets(b, k)) {
            sum += std::min(of_a, of_b);
            ++count;
          }
        }
        const auto series = PerTask(samples, metric, Estimator::kUnbiased, k, Shapes::kAllMustPass);
        EXPECT_THAT(series.value().tasks, ElementsAre("t"));
        EXPECT_NEAR(series->values[0], sum / count, 1e-12) << n << " " << k;
      };
      expect_mean(Metric::kMeanSpeedup, first, second);
      expect_mean(Metric::kFast1, AboveOne(first), AboveOne(second));
    }
  }
}

}  // namespace
}  // namespace tritonrl
