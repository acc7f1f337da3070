#include "eval/metrics/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;

Series MakeSeries(const std::vector<double>& values, const std::string& prefix = "task") {
  Series series;
  for (size_t i = 0; i < values.size(); ++i) {
    series.tasks.push_back(absl::StrFormat("%s%04d", prefix, i));
  }
  series.values = values;
  return series;
}

Interval IntervalOf(const Series& series, const BootstrapOptions& options = {}) {
  return BootstrapMeans({series}, options).value()[0];
}

bool Contains(const Interval& interval, double value) {
  return interval.low <= value && value <= interval.high;
}

// Of four values there are 256 equally likely resamples.
TEST(BootstrapTest, HasThePercentilesOfAllResamples) {
  const std::vector<double> values = {0, 0.1, 0.37, 1};
  std::vector<double> means;
  for (int resample = 0; resample < 256; ++resample) {
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += values[resample >> 2 * i & 3];
    means.push_back(sum / 4);
  }
  std::sort(means.begin(), means.end());
  // t_{3, 0.75} = 0.764892, times sqrt(4 / 3); the normal distribution has 0.18856 above that.
  const double outside = 0.18856, error = 0.015;
  const auto quantile = [&](double share) { return means[static_cast<int>(share * 256)]; };
  const Interval interval = IntervalOf(MakeSeries(values), {.resamples = 20000, .level = 0.5});
  EXPECT_DOUBLE_EQ(interval.value, 0.3675);
  EXPECT_GE(interval.low, quantile(outside - error) - 1e-12);
  EXPECT_LE(interval.low, quantile(outside + error) + 1e-12);
  EXPECT_GE(interval.high, quantile(1 - outside - error) - 1e-12);
  EXPECT_LE(interval.high, quantile(1 - outside + error) + 1e-12);
  EXPECT_LT(quantile(outside + error), quantile(1 - outside - error));
}

TEST(BootstrapTest, IsNearTheNormalIntervalForManyTasks) {
  Philox random(1);
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(random.Uniform());
  const Interval interval = IntervalOf(MakeSeries(values), {.resamples = 10000});
  const double half = 1.96 * std::sqrt(1.0 / 12 / 1000);
  EXPECT_NEAR((interval.high - interval.low) / 2, half, 0.05 * half);
}

// The share of simulated evaluations of `tasks` tasks whose interval contains `mean`. draw(random)
// is the value of a random task.
template <typename DrawTask>
double Coverage(int tasks, double mean, uint64_t key, DrawTask draw) {
  constexpr int kEvaluations = 2000;
  Philox random(key);
  std::vector<Series> series;
  for (int i = 0; i < kEvaluations; ++i) {
    std::vector<double> values(tasks);
    for (double& value : values) value = draw(&random);
    series.push_back(MakeSeries(values));
  }
  int covered = 0;
  for (const Interval& interval : BootstrapMeans(series, {}).value()) {
    covered += Contains(interval, mean);
  }
  return static_cast<double>(covered) / kEvaluations;
}

// The chances of tasks are skewed: u^2 has the mean 1 / 3.
double DrawChance(Philox* random) {
  const double u = random->Uniform();
  return u * u;
}

double DrawPassAt1(Philox* random) {
  const double chance = DrawChance(random);
  int correct = 0;
  for (int i = 0; i < 10; ++i) correct += random->Uniform() < chance;
  return correct / 10.0;
}

TEST(BootstrapTest, CoversTheTrueMean) {
  for (const int tasks : {32, 100}) {
    const double of_10 = Coverage(tasks, 1.0 / 3, 2, DrawPassAt1);
    const double of_1 = Coverage(tasks, 1.0 / 3, 3, [](Philox* random) {
      return random->Uniform() < DrawChance(random) ? 1.0 : 0.0;
    });
    // 0, or a speedup whose logarithm is normal.
    const double speedup = Coverage(tasks, 0.7 * std::exp(0.125), 4, [](Philox* random) {
      return random->Uniform() < 0.7 ? std::exp(0.5 * random->Normal()) : 0.0;
    });
    for (const double coverage : {of_10, of_1, speedup}) {
      EXPECT_GE(coverage, 0.92) << tasks;
      EXPECT_LE(coverage, 0.97) << tasks;
    }
  }
}

TEST(BootstrapTest, SeriesOfEqualTasksShareTheirDraws) {
  Philox random(5);
  std::vector<double> values;
  for (int i = 0; i < 40; ++i) values.push_back(random.Uniform());
  std::vector<double> higher = values;
  for (double& value : higher) value += 2;
  const Series series = MakeSeries(values), shifted = MakeSeries(higher);
  const Series others = MakeSeries(values, "other");
  const auto together = BootstrapMeans({others, series, shifted}, {}).value();
  // With the same draws each mean is higher by 2.
  EXPECT_NEAR(together[2].low, together[1].low + 2, 1e-12);
  EXPECT_NEAR(together[2].high, together[1].high + 2, 1e-12);
  // Other tasks have other draws, and no series depends on those beside it.
  EXPECT_NE(together[0].low, together[1].low);
  EXPECT_EQ(IntervalOf(series).low, together[1].low);
  EXPECT_EQ(IntervalOf(series).high, together[1].high);
  EXPECT_NE(IntervalOf(series, {.seed = 1}).low, together[1].low);
  const Interval narrower = IntervalOf(series, {.level = 0.5});
  EXPECT_GT(narrower.low, together[1].low);
  EXPECT_LT(narrower.high, together[1].high);
}

TEST(BootstrapTest, OneTaskOrOneSeedHasNoInterval) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Series one = MakeSeries({0.5}), two = MakeSeries({0.5, 0.7});
  for (const Interval& interval :
       {IntervalOf(one), PairedDifferenceOfRuns({{1, two}}, {{1, two}}, {}).value(),
        PairedDifferenceOfRuns({{1, one}, {2, one}}, {{1, one}, {2, one}}, {}).value()}) {
    EXPECT_EQ(interval.low, -kInfinity);
    EXPECT_EQ(interval.high, kInfinity);
  }
  EXPECT_EQ(IntervalOf(one).value, 0.5);
}

TEST(BootstrapTest, ErrorsNameWhatIsWrong) {
  const auto error = [](const Series& series, const BootstrapOptions& options = {}) {
    return Message(BootstrapMeans({series}, options).status());
  };
  const Series good = MakeSeries({0, 1});
  EXPECT_EQ(error(good), "");
  EXPECT_THAT(error({}), HasSubstr("without tasks"));
  EXPECT_THAT(error(good, {.resamples = 0}), HasSubstr("resamples is 0"));
  EXPECT_THAT(error(good, {.level = 95}), HasSubstr("is 95"));
  EXPECT_THAT(error(MakeSeries({0, std::nan("")})), HasSubstr("task0001"));
  EXPECT_THAT(error({.tasks = {"a", "b"}, .values = {1}}), HasSubstr("2 tasks and 1 values"));
  EXPECT_THAT(error({.tasks = {"b", "a"}, .values = {1, 1}}), HasSubstr("sorted"));
  EXPECT_THAT(error({.tasks = {"a", "a"}, .values = {1, 1}}), HasSubstr("sorted"));
}

TEST(PairedDifferenceTest, IsTheBootstrapOfDifferences) {
  Philox random(6);
  std::vector<double> a, b, differences;
  for (int i = 0; i < 60; ++i) {
    const double task = random.Uniform();
    a.push_back(task + 0.05 + 0.02 * random.Normal());
    b.push_back(task + 0.02 * random.Normal());
    differences.push_back(a.back() - b.back());
  }
  const Interval paired = PairedDifference(MakeSeries(a), MakeSeries(b), {}).value();
  const Interval direct = IntervalOf(MakeSeries(differences));
  EXPECT_DOUBLE_EQ(paired.value, direct.value);
  EXPECT_DOUBLE_EQ(paired.low, direct.low);
  EXPECT_DOUBLE_EQ(paired.high, direct.high);
  // The tasks' own spread cancels: unpaired, the difference would not be seen.
  EXPECT_GT(paired.low, 0);
  const Interval mean = IntervalOf(MakeSeries(a));
  EXPECT_LT(paired.high - paired.low, (mean.high - mean.low) / 5);
}

TEST(PairedDifferenceTest, OnlyTasksLeftOutMayBeMissing) {
  Series a = {.tasks = {"a", "b", "c"}, .values = {1, 2, 9}};
  Series b = {.tasks = {"a", "b"}, .values = {0.5, 1}};
  EXPECT_EQ(Message(PairedDifference(a, b, {}).status()),
            "the series have different tasks: c is not in all of them");
  EXPECT_EQ(Message(PairedDifference(b, a, {}).status()),
            "the series have different tasks: c is not in all of them");
  b.left_out = {"c"};
  EXPECT_DOUBLE_EQ(PairedDifference(a, b, {}).value().value, 0.75);
  EXPECT_DOUBLE_EQ(PairedDifference(b, a, {}).value().value, -0.75);
  const Series c = {.tasks = {"c"}, .values = {1}, .left_out = {"a", "b"}};
  EXPECT_THAT(Message(PairedDifference(b, c, {}).status()), HasSubstr("no task in common"));
  EXPECT_FALSE(PairedDifference(a, Series(), {}).ok());
}

// Pairs of trainings that differ by 0.03 on average, by `seed_deviation` over seeds, and by 0.2
// over tasks and 0.1 over samples.
Interval SimulatedRuns(int seeds, int tasks, double seed_deviation, Philox* random) {
  std::map<uint64_t, Series> a, b;
  std::vector<double> of_tasks(tasks);
  for (double& of_task : of_tasks) of_task = 0.2 * random->Normal();
  for (int seed = 0; seed < seeds; ++seed) {
    const double of_seed = 0.03 + seed_deviation * random->Normal();
    std::vector<double> values_a, values_b;
    for (int task = 0; task < tasks; ++task) {
      const double common = random->Uniform();
      values_a.push_back(common + of_seed + of_tasks[task] + 0.1 * random->Normal());
      values_b.push_back(common);
    }
    a[seed] = MakeSeries(values_a);
    b[seed] = MakeSeries(values_b);
  }
  return PairedDifferenceOfRuns(a, b, {.resamples = 1000}).value();
}

TEST(PairedDifferenceOfRunsTest, CoversTheTrueDifference) {
  constexpr int kComparisons = 400;
  struct Case {
    int seeds, tasks;
    double seed_deviation;
  };
  // Most of the spread is over seeds; over both; over tasks.
  for (const Case& c : std::vector<Case>{{8, 64, 0.2}, {16, 64, 0.1}, {16, 32, 0}}) {
    Philox random(7, c.seeds);
    int covered = 0;
    for (int i = 0; i < kComparisons; ++i) {
      covered += Contains(SimulatedRuns(c.seeds, c.tasks, c.seed_deviation, &random), 0.03);
    }
    EXPECT_GE(covered, 0.92 * kComparisons) << c.seeds << " " << c.tasks;
    EXPECT_LE(covered, 0.99 * kComparisons) << c.seeds << " " << c.tasks;
  }
}

TEST(PairedDifferenceOfRunsTest, SeedsAndTasksMustBePaired) {
  Series a = MakeSeries({1, 2, 3}), b = MakeSeries({0.5, 1, 1.5});
  const auto difference = PairedDifferenceOfRuns({{1, a}, {2, a}}, {{1, b}, {2, b}}, {});
  EXPECT_DOUBLE_EQ(difference.value().value, 1);
  EXPECT_EQ(Message(PairedDifferenceOfRuns({{1, a}, {2, a}}, {{1, b}}, {}).status()),
            "seed 2 is in one of the two compared trainings only");
  EXPECT_EQ(Message(PairedDifferenceOfRuns({{1, a}}, {{1, b}, {2, b}}, {}).status()),
            "seed 2 is in one of the two compared trainings only");
  EXPECT_FALSE(PairedDifferenceOfRuns({}, {}, {}).ok());
  // A task that one training lost counts for none.
  Series without = {.tasks = {a.tasks[0], a.tasks[1]}, .values = {1, 2}};
  EXPECT_THAT(
      Message(PairedDifferenceOfRuns({{1, a}, {2, without}}, {{1, b}, {2, b}}, {}).status()),
      HasSubstr("task0002 is not in all of them"));
  without.left_out = {a.tasks[2]};
  EXPECT_DOUBLE_EQ(
      PairedDifferenceOfRuns({{1, a}, {2, without}}, {{1, b}, {2, b}}, {}).value().value, 0.75);
}

}  // namespace
}  // namespace tritonrl
