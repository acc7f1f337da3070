#include "eval/run/estimates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tritonrl {
namespace {

using testing::HasSubstr;
using testing::Not;

// Of `tasks` tasks of a level with four samples each; of task i the first i samples are correct.
std::vector<ScoredSample> Level(int level, int tasks) {
  std::vector<ScoredSample> samples;
  for (int task = 0; task < tasks; ++task) {
    for (int number = 0; number < 4; ++number) {
      ScoredSample sample;
      sample.task = absl::StrCat("level", level, "/", task);
      sample.level = level;
      sample.sample = number;
      sample.failure = FailureKind::kIncorrect;
      sample.score.syntax = sample.score.valid = sample.score.compiled = true;
      if (number < task) {
        sample.score.correct = true;
        sample.score.speedup = sample.score.speedup_low = 1.5;
        sample.failure = FailureKind::kCorrect;
      }
      samples.push_back(sample);
    }
  }
  return samples;
}

TEST(EstimatesTest, RowsOfOneLevel) {
  const auto rows = Estimate(Level(1, 5), 4);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 3u);  // the first, the first four, pass@1
  EXPECT_EQ((*rows)[0].k, 1);
  EXPECT_EQ((*rows)[0].tasks, 5);
  EXPECT_DOUBLE_EQ((*rows)[0].values.at(Metric::kCorrect).value, 0.8);
  EXPECT_DOUBLE_EQ((*rows)[1].values.at(Metric::kFast1).value, 0.8);
  EXPECT_DOUBLE_EQ((*rows)[1].values.at(Metric::kFast2).value, 0);
  EXPECT_EQ((*rows)[2].estimator, Estimator::kUnbiased);
  // 0, 1, 2, 3 and 4 of four samples.
  EXPECT_DOUBLE_EQ((*rows)[2].values.at(Metric::kCorrect).value, 0.5);
  for (const EstimateRow& row : *rows) {
    for (const auto& [metric, interval] : row.values) {
      EXPECT_LE(interval.low, interval.value);
      EXPECT_GE(interval.high, interval.value);
    }
  }
}

TEST(EstimatesTest, LevelsApartAndTogether) {
  std::vector<ScoredSample> samples = Level(1, 5);
  for (ScoredSample& sample : Level(2, 3)) samples.push_back(std::move(sample));
  const auto rows = Estimate(samples, 4);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 9u);
  EXPECT_EQ((*rows)[0].tasks, 8);
  EXPECT_EQ((*rows)[3].level, 1);
  EXPECT_EQ((*rows)[6].level, 2);
  EXPECT_EQ((*rows)[6].tasks, 3);
}

TEST(EstimatesTest, TablesSayWhatIsModelledAndLost) {
  std::vector<ScoredSample> samples = Level(1, 5);
  samples[3].failure = FailureKind::kNoVerdict;
  const auto rows = Estimate(samples, 4);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const std::string table = EstimatesTable(*rows, /*modelled=*/true);
  EXPECT_THAT(table, HasSubstr("mean speedup (modelled)"));
  EXPECT_THAT(table, HasSubstr("max over the first 4"));
  EXPECT_THAT(table, HasSubstr("1 samples have no verdict"));
  EXPECT_THAT(EstimatesTable(*rows, /*modelled=*/false), Not(HasSubstr("modelled")));
  const auto json = nlohmann::json::parse(EstimatesJson(*rows));
  EXPECT_EQ(json.size(), rows->size());
  EXPECT_EQ(json[0]["correct"].size(), 3u);
}

TEST(EstimatesTest, OneTaskHasNoInterval) {
  const auto rows = Estimate(Level(1, 1), 4);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const std::string table = EstimatesTable(*rows, /*modelled=*/false);
  EXPECT_THAT(table, HasSubstr("100.0 (no interval)"));
  EXPECT_THAT(table, HasSubstr("0.00x (no interval)"));
  EXPECT_THAT(table, Not(HasSubstr("inf")));
}

TEST(EstimatesTest, MoreSamplesThanThereAreIsAnError) {
  EXPECT_EQ(Estimate(Level(1, 2), 5).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tritonrl
