#include "eval/metrics/scores.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "exec/device_backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A verdict whose first `passed` of syntax, functionality, compiled and correct are OK, and whose
// next layer fails.
Verdict MakeVerdict(const std::string& task, int passed, double speedup = 0) {
  constexpr Layer kLayers[] = {LAYER_SYNTAX, LAYER_FUNCTIONALITY, LAYER_COMPILED, LAYER_CORRECT};
  constexpr Outcome::Reason kFailures[] = {Outcome::NO_KERNEL, Outcome::FORBIDDEN,
                                           Outcome::COMPILE_ERROR, Outcome::MISMATCH};
  Verdict verdict;
  verdict.set_task_id(task);
  for (int i = 0; i < 4 && i <= passed; ++i) {
    MutableResult(kLayers[i], &verdict)->set_reason(i < passed ? Outcome::OK : kFailures[i]);
  }
  if (passed == 4) verdict.mutable_speedup()->set_speedup(speedup);
  Summarize(&verdict);
  return verdict;
}

Verdict LostVerdict(const std::string& task) {
  Verdict verdict;
  verdict.set_task_id(task);
  SetOutcome(Outcome::WORKER_LOST, "", verdict.mutable_outcome());
  return verdict;
}

ScoredSample Number(int number, const Verdict& verdict) {
  ScoredSample sample = ScoreSample(verdict);
  sample.sample = number;
  return sample;
}

// The samples of a task: passed layers each, -1 for a lost sample.
void Append(const std::string& task, const std::vector<int>& passed,
            std::vector<ScoredSample>* samples) {
  for (int i = 0; i < passed.size(); ++i) {
    samples->push_back(
        Number(i, passed[i] < 0 ? LostVerdict(task) : MakeVerdict(task, passed[i], 1.5)));
  }
}

TEST(FailureTest, IsTheFirstFailedLayer) {
  EXPECT_EQ(FailureOf(MakeVerdict("t", 0)), FailureKind::kSyntax);
  EXPECT_EQ(FailureOf(MakeVerdict("t", 1)), FailureKind::kFunctionality);
  EXPECT_EQ(FailureOf(MakeVerdict("t", 2)), FailureKind::kCompile);
  EXPECT_EQ(FailureOf(MakeVerdict("t", 3)), FailureKind::kIncorrect);
  EXPECT_EQ(FailureOf(MakeVerdict("t", 4, 1)), FailureKind::kCorrect);
  EXPECT_EQ(FailureOf(LostVerdict("t")), FailureKind::kNoVerdict);
  Verdict objected = MakeVerdict("t", 4, 1);
  MutableResult(LAYER_JUDGE, &objected)->set_reason(Outcome::CHEATING);
  Summarize(&objected);
  EXPECT_EQ(FailureOf(objected), FailureKind::kFunctionality);
}

TEST(PerTaskTest, ASampleContributesWhatItsVerdictSays) {
  Verdict verdict = MakeVerdict("t", 4, 2.5);
  verdict.mutable_speedup()->mutable_timing()->set_speedup_low(1.9);
  const std::vector<ScoredSample> samples = {ScoreSample(verdict)};
  const auto value = [&](Metric metric) {
    return PerTask(samples, metric, Estimator::kUnbiased, 1, Shapes::kApart).value().values[0];
  };
  EXPECT_EQ(value(Metric::kValid), 1);
  EXPECT_EQ(value(Metric::kCompiled), 1);
  EXPECT_EQ(value(Metric::kCorrect), 1);
  EXPECT_EQ(value(Metric::kFast1), 1);
  EXPECT_EQ(value(Metric::kFast2), 0);  // by the lower end
  EXPECT_EQ(value(Metric::kMeanSpeedup), 2.5);
}

// The means over tasks are those of MetricsBuilder.
TEST(PerTaskTest, HasTheMeansOfTheVerifiersMetrics) {
  Philox random(1);
  std::vector<ScoredSample> samples;
  MetricsBuilder builder;
  for (int task = 0; task < 20; ++task) {
    for (int i = 0; i < 10; ++i) {
      const Verdict verdict = MakeVerdict(absl::StrCat("task", task),
                                          static_cast<int>(random.Below(5)), 4 * random.Uniform());
      builder.Add(verdict);
      samples.push_back(Number(i, verdict));
    }
  }
  random.Shuffle(&samples);
  const std::map<Metric, double Metrics::*> fields = {
      {Metric::kValid, &Metrics::valid},     {Metric::kCompiled, &Metrics::compiled},
      {Metric::kCorrect, &Metrics::correct}, {Metric::kFast1, &Metrics::fast_1},
      {Metric::kFast2, &Metrics::fast_2},    {Metric::kMeanSpeedup, &Metrics::mean_speedup}};
  for (const int k : {1, 5, 10}) {
    const std::map<Estimator, Metrics> expected = {
        {Estimator::kMaxOverFirst, builder.MaxOverFirst(k)},
        {Estimator::kUnbiased, builder.PassAtK(k).value()}};
    for (const auto& [estimator, metrics] : expected) {
      for (const auto& [metric, field] : fields) {
        const Series series = PerTask(samples, metric, estimator, k, Shapes::kApart).value();
        double sum = 0;
        for (const double value : series.values) sum += value;
        EXPECT_NEAR(sum / 20, metrics.*field, 1e-12) << k << " " << static_cast<int>(metric);
      }
    }
  }
}

TEST(PerTaskTest, AllShapesMustPass) {
  std::vector<ScoredSample> samples;
  Append("level1/19_ReLU_v2", {4, 3}, &samples);
  Append("level1/19_ReLU_v10", {3, 4}, &samples);
  Append("level1/20_Tanh_v1", {4, 4}, &samples);
  Append("level1/20_Tanh_v2", {3, 3}, &samples);
  const auto values = [&](int k, Shapes shapes) {
    return PerTask(samples, Metric::kCorrect, Estimator::kMaxOverFirst, k, shapes).value();
  };
  EXPECT_THAT(values(1, Shapes::kAllMustPass).values, ElementsAre(0, 0));
  EXPECT_THAT(values(2, Shapes::kAllMustPass).tasks,
              ElementsAre("level1/19_ReLU", "level1/20_Tanh"));
  EXPECT_THAT(values(2, Shapes::kAllMustPass).values, ElementsAre(1, 0));
  EXPECT_THAT(values(1, Shapes::kApart).tasks,
              ElementsAre("level1/19_ReLU_v10", "level1/19_ReLU_v2", "level1/20_Tanh_v1",
                          "level1/20_Tanh_v2"));
  EXPECT_THAT(values(1, Shapes::kApart).values, ElementsAre(0, 1, 1, 0));
}

TEST(PerTaskTest, TheOriginIsWithoutTheVariant) {
  EXPECT_EQ(OriginOf("level1/19_ReLU_v12"), "level1/19_ReLU");
  for (const char* task :
       {"level1/19_ReLU", "level1/19_ReLU_v", "level1/19_ReLU_v2b", "level_v2/19_ReLU", ""}) {
    EXPECT_EQ(OriginOf(task), task);
  }
}

TEST(PerTaskTest, LostSamplesAreNoFailures) {
  std::vector<ScoredSample> samples;
  Append("a", {-1, 3, 4}, &samples);   // one lost
  Append("b", {-1, -1, 4}, &samples);  // fewer than two left
  Append("c", {-1, -1, -1}, &samples);
  const auto values = [&](Estimator estimator, int k) {
    return PerTask(samples, Metric::kCorrect, estimator, k, Shapes::kApart).value();
  };
  const Series first = values(Estimator::kMaxOverFirst, 2);
  EXPECT_THAT(first.tasks, ElementsAre("a", "b"));
  EXPECT_THAT(first.values, ElementsAre(1, 1));
  EXPECT_EQ(first.lost, 6);
  EXPECT_EQ(first.short_tasks, 1);
  EXPECT_THAT(first.left_out, ElementsAre("c"));
  // The first sample is the first that has a verdict.
  EXPECT_THAT(values(Estimator::kMaxOverFirst, 1).values, ElementsAre(0, 1));
  EXPECT_EQ(values(Estimator::kMaxOverFirst, 1).short_tasks, 0);
  EXPECT_THAT(values(Estimator::kUnbiased, 1).values, ElementsAre(0.5, 1));
  EXPECT_THAT(values(Estimator::kUnbiased, 3).values, ElementsAre(1, 1));
}

TEST(PerTaskTest, AVariantWithoutAVerdictLeavesItsTaskOut) {
  std::vector<ScoredSample> samples;
  Append("a_v1", {4}, &samples);
  Append("a_v2", {-1}, &samples);
  Append("b_v1", {4}, &samples);
  const Series series =
      PerTask(samples, Metric::kCorrect, Estimator::kUnbiased, 1, Shapes::kAllMustPass).value();
  EXPECT_THAT(series.tasks, ElementsAre("b"));
  EXPECT_THAT(series.left_out, ElementsAre("a"));
}

TEST(PerTaskTest, ErrorsNameTaskAndNumbers) {
  std::vector<ScoredSample> samples;
  Append("a", {4, 4, 4}, &samples);
  Append("b", {4, -1}, &samples);
  const auto error = [&](Metric metric, int k) {
    return Message(PerTask(samples, metric, Estimator::kUnbiased, k, Shapes::kApart).status());
  };
  EXPECT_EQ(error(Metric::kCorrect, 2), "");
  EXPECT_EQ(error(Metric::kCorrect, 3), "task b has 2 samples, but k is 3");
  EXPECT_EQ(error(Metric::kCorrect, 0), "k is 0, but must be positive");
  EXPECT_THAT(error(Metric::kOpenCorrect, 1), HasSubstr("without functionality checks"));
  samples.push_back(samples[1]);
  EXPECT_THAT(error(Metric::kCorrect, 2), HasSubstr("task a has sample 1 twice"));
}

TEST(PerTaskTest, OpenScoresAreApart) {
  std::vector<ScoredSample> samples;
  Append("a", {1, 4}, &samples);
  samples[0].open = ScoreOf(MakeVerdict("a", 4, 1));
  const auto series = [&](Metric metric) {
    return PerTask(samples, metric, Estimator::kMaxOverFirst, 1, Shapes::kApart).value();
  };
  EXPECT_THAT(series(Metric::kCorrect).values, ElementsAre(0));
  EXPECT_EQ(series(Metric::kCorrect).lost, 0);
  EXPECT_THAT(series(Metric::kOpenCorrect).values, ElementsAre(1));
  EXPECT_THAT(series(Metric::kOpenCompiled).values, ElementsAre(1));
  EXPECT_EQ(series(Metric::kOpenCorrect).lost, 1);  // the second has no open score
}

TEST(BestOfTurnsTest, KeepsWhatAnyTurnPasses) {
  std::vector<ScoredSample> samples;
  const auto add = [&](int sample, int turn, const Verdict& verdict) {
    samples.push_back(Number(sample, verdict));
    samples.back().turn = turn;
  };
  add(0, 2, MakeVerdict("t", 4, 3));
  add(0, 1, MakeVerdict("t", 1));
  add(0, 0, MakeVerdict("t", 3));
  add(1, 0, MakeVerdict("t", 4, 2));
  add(1, 1, LostVerdict("t"));
  add(2, 0, LostVerdict("t"));
  samples[0].open = ScoreOf(MakeVerdict("t", 4, 3));
  samples[1].open = ScoreOf(MakeVerdict("t", 3));

  std::vector<ScoredSample> best = BestOfTurns(samples, 2);
  ASSERT_EQ(best.size(), 3);
  EXPECT_EQ(best[0].failure, FailureKind::kIncorrect);
  EXPECT_TRUE(best[0].score.compiled);
  EXPECT_FALSE(best[0].score.correct);
  EXPECT_TRUE(best[0].open->compiled);
  EXPECT_FALSE(best[0].open->correct);
  EXPECT_EQ(best[1].failure, FailureKind::kCorrect);
  EXPECT_EQ(best[1].score.speedup, 2);
  EXPECT_EQ(best[2].failure, FailureKind::kNoVerdict);

  best = BestOfTurns(samples, 3);
  EXPECT_EQ(best[0].score.speedup, 3);
  EXPECT_TRUE(best[0].open->correct);
  const Series series =
      PerTask(best, Metric::kCorrect, Estimator::kUnbiased, 3, Shapes::kApart).value();
  EXPECT_THAT(series.values, ElementsAre(1));
  EXPECT_EQ(series.lost, 1);
}

}  // namespace
}  // namespace tritonrl
