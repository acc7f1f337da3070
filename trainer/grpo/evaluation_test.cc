#include "trainer/grpo/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "trainer/grpo/evaluator.h"
#include "trainer/grpo/grpo_step.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A record of task `task` of a level; `correct` with this speedup, or wrong.
SampleRecord Record(const std::string& task, int level, int index, double speedup) {
  SampleRecord record;
  record.task_id = task;
  record.level = level;
  record.index = index;
  record.tokens = 10;
  Verdict* verdict = &record.verdict;
  verdict->set_task_id(task);
  for (const Layer layer : {LAYER_SYNTAX, LAYER_FUNCTIONALITY, LAYER_COMPILED}) {
    MutableResult(layer, verdict)->set_reason(Outcome::OK);
  }
  MutableResult(LAYER_CORRECT, verdict)->set_reason(speedup > 0 ? Outcome::OK : Outcome::MISMATCH);
  verdict->mutable_speedup()->set_speedup(speedup);
  Summarize(verdict);
  return record;
}

EvaluationResult Result(int64_t step, double correct) {
  EvaluationResult result;
  result.step = step;
  result.k = 10;
  result.tasks = 24;
  for (int k : {1, 10}) {
    Metrics& metrics = result.pass_at[k];
    metrics.correct = k == 1 ? correct : 1.0;
    metrics.valid = 0.9;
    metrics.mean_speedup = 2 * correct;
    metrics.tasks = 24;
    metrics.modelled = true;
  }
  result.fused_share = 0.5 + correct / 2;
  result.has_greedy = true;
  result.greedy.correct = correct + 0.1;
  return result;
}

TEST(EvaluationTest, FieldsAndBack) {
  const EvaluationResult result = Result(80, 0.75);
  const auto back = EvaluationFromJson(MetricsLine(result.step, EvaluationFields(result)));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->step, 80);
  EXPECT_EQ(back->k, 10);
  EXPECT_EQ(back->pass_at.at(1).correct, 0.75);
  EXPECT_EQ(back->pass_at.at(1).tasks, 24);
  EXPECT_TRUE(back->pass_at.at(10).modelled);
  EXPECT_EQ(back->fused_share, result.fused_share);
  EXPECT_EQ(back->greedy.correct, 0.85);
  EXPECT_FALSE(EvaluationFromJson("{\"step\":").ok());
}

// Two tasks of level 1 and one of level 2, six samples each.
std::vector<SampleRecord> SampledRecords() {
  std::vector<SampleRecord> records;
  for (int i = 0; i < 6; ++i) {
    records.push_back(Record("level1/a", 1, i, 1.5));
    records.push_back(Record("level1/b", 1, i, i == 5 ? 3.0 : 0));  // only the last is correct
    records.push_back(Record("level2/c", 2, i, 0));
  }
  return records;
}

TEST(EvaluationTest, LevelsAreReportedApart) {
  const auto result =
      Summarise(SampledRecords(), {Record("level1/a", 1, 0, 1.5), Record("level2/c", 2, 0, 0)});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->tasks, 3);
  EXPECT_DOUBLE_EQ(result->pass_at.at(6).correct, 2.0 / 3);
  ASSERT_EQ(result->levels.size(), 2u);
  const TaskMetrics& one = result->levels.at(1);
  EXPECT_EQ(one.tasks, 2);
  EXPECT_DOUBLE_EQ(one.pass_at.at(1).correct, (1 + 1.0 / 6) / 2);
  EXPECT_DOUBLE_EQ(one.pass_at.at(6).correct, 1);
  EXPECT_DOUBLE_EQ(one.pass_at.at(6).mean_speedup, (1.5 + 3) / 2);
  EXPECT_DOUBLE_EQ(one.greedy.correct, 1);
  EXPECT_EQ(result->levels.at(2).tasks, 1);
  EXPECT_DOUBLE_EQ(result->levels.at(2).pass_at.at(6).correct, 0);
  EXPECT_DOUBLE_EQ(result->levels.at(2).greedy.correct, 0);

  const auto back = EvaluationFromJson(MetricsLine(4, EvaluationFields(*result)));
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->levels.size(), 2u);
  EXPECT_EQ(back->levels.at(1).tasks, 2);
  EXPECT_DOUBLE_EQ(back->levels.at(1).pass_at.at(6).mean_speedup, (1.5 + 3) / 2);
  EXPECT_TRUE(back->levels.at(2).has_greedy);

  const std::string table = EvaluationTable(*back, nullptr);
  EXPECT_THAT(table, HasSubstr("level 1: correct, pass@6         100.0 %\n"));
  EXPECT_THAT(table, HasSubstr("level 2: correct, pass@6           0.0 %\n"));
  EXPECT_THAT(EvaluationLine(*back), HasSubstr("level 1 correct 58.3% level 2 correct 0.0%"));
}

TEST(EvaluationTest, OneLevelOrNoneHasNoRowsOfItsOwn) {
  const auto result = Summarise({Record("level1/a", 1, 0, 1.5), Record("b", 0, 0, 1.5)}, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->tasks, 2);
  EXPECT_EQ(result->levels.size(), 1u);
  EXPECT_EQ(EvaluationTable(*result, nullptr).find("level 1"), std::string::npos);
}

TEST(EvaluationTest, BothEstimatorsOfPassAtKAreShown) {
  const auto result = Summarise(SampledRecords(), {});
  ASSERT_TRUE(result.ok()) << result.status();
  // Task b's only correct sample is its last: among five of six in five of six draws, but not
  // among the first five.
  EXPECT_NEAR(result->levels.at(1).pass_at.at(5).correct, (1 + 5.0 / 6) / 2, 1e-12);
  EXPECT_DOUBLE_EQ(result->levels.at(1).max_over_first.at(5).correct, 0.5);
  EXPECT_DOUBLE_EQ(result->max_over_first.at(6).correct, 2.0 / 3);
  const auto back = EvaluationFromJson(MetricsLine(0, EvaluationFields(*result)));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_DOUBLE_EQ(back->max_over_first.at(5).correct, 1.0 / 3);
  const std::string table = EvaluationTable(*result, nullptr);
  EXPECT_THAT(table, HasSubstr("correct, pass@5                   61.1 %\n"));
  EXPECT_THAT(table, HasSubstr("correct, max of first 5           33.3 %\n"));
}

TEST(EvaluationTest, TableSaysBeforeAfterChangeAndModelled) {
  const EvaluationResult before = Result(0, 0.45), after = Result(80, 0.75);
  const std::string table = EvaluationTable(before, &after);
  EXPECT_THAT(table, HasSubstr("Held-out tasks: 24, 10 samples each at temperature 1\n"));
  EXPECT_THAT(table, HasSubstr("correct                           45.0 %     75.0 %     +30.0\n"));
  EXPECT_THAT(table, HasSubstr("mean speedup (modelled)            0.90x      1.50x     +0.60\n"));
  EXPECT_THAT(table, HasSubstr("correct, pass@10"));
  EXPECT_THAT(table, HasSubstr("correct, greedy"));
  EXPECT_THAT(EvaluationTable(before, nullptr), HasSubstr("45.0 %\n"));
  EXPECT_THAT(EvaluationTable(before, nullptr), HasSubstr("result\n"));
}

TEST(EvaluationTest, LogForgetsWhatAResumedRunWillRepeat) {
  const std::string dir = MakeTempDirectory("evaluations").value();
  ASSERT_TRUE(CreateDirectories(dir + "/samples").ok());
  const RunPaths paths{dir};
  {
    EvaluationLog log(paths);
    ASSERT_TRUE(log.Open(0).ok());
    for (int64_t step : {0, 20, 40}) {
      Evaluator::Finished finished;
      finished.result = Result(step, 0.5);
      ASSERT_TRUE(log.Add(finished).ok());
    }
  }
  EvaluationLog log(paths);
  ASSERT_TRUE(log.Open(20).ok());
  EXPECT_NE(log.Find(0), nullptr);
  EXPECT_NE(log.Find(20), nullptr);
  EXPECT_EQ(log.Find(40), nullptr);
  ASSERT_TRUE(log.Open(0).ok());  // no checkpoint exists: the run starts again
  EXPECT_EQ(log.Find(0), nullptr);
  EXPECT_TRUE(RemoveTree(dir).ok());
}

TEST(StepMetricsTest, LineNamesWhatIsModelled) {
  StepMetrics metrics;
  metrics.reward_plan = 0.85;
  metrics.correct_rate = 0.52;
  metrics.mean_speedup = 1.234;
  metrics.modelled = true;
  metrics.tokens_per_s = 9800;
  metrics.infra_errors = 2;
  EXPECT_EQ(StepLine(metrics),
            "reward plan 0.85 code 0.00 | valid 0% compiled 0% correct 52% | speedup 1.23x "
            "(modelled) fused 0% | 9.8k tok/s | rollout 0.0s verify 0.0s learn 0.0s | 2 dropped "
            "(infra errors)");
}

TEST(StepMetricsTest, FieldsHoldWhatReadersExpect) {
  const std::string line = MetricsLine(3, StepFields(StepMetrics()));
  for (const char* field : {"step", "reward_plan", "reward_code", "valid_rate", "compiled_rate",
                            "correct_rate", "mean_speedup", "tokens_per_s", "logprob_max_diff",
                            "seconds_rollout", "seconds_verify", "seconds_learn"}) {
    EXPECT_THAT(line, HasSubstr(std::string("\"") + field + "\":"));
  }
}

TEST(StepMetricsTest, LevelsAreFieldsOfTheirOwn) {
  StepMetrics metrics;
  const std::string none = MetricsLine(3, StepFields(metrics));
  EXPECT_THAT(none, Not(HasSubstr("level")));
  EXPECT_THAT(none, Not(HasSubstr("epoch")));
  metrics.epoch = 0.5;
  metrics.levels[2] = {.samples = 4, .valid_rate = 0.75, .correct_rate = 0.25, .mean_speedup = 1.5};
  const std::string line = MetricsLine(3, StepFields(metrics));
  for (const char* field : {"\"epoch\":0.5", "\"level2_samples\":4", "\"level2_valid_rate\":0.75",
                            "\"level2_correct_rate\":0.25", "\"level2_mean_speedup\":1.5"}) {
    EXPECT_THAT(line, HasSubstr(field));
  }
  EXPECT_THAT(line, Not(HasSubstr("level1_")));
}

}  // namespace
}  // namespace tritonrl
