#include "trainer/grpo/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "trainer/grpo/evaluator.h"
#include "trainer/grpo/grpo_step.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;

EvaluationResult Result(int64_t step, double correct) {
  EvaluationResult result;
  result.step = step;
  result.k = 10;
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

}  // namespace
}  // namespace tritonrl
