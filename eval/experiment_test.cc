#include "eval/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/status.h"
#include "eval/benchmark.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;

EvaluationResult Result(int64_t step, double correct) {
  EvaluationResult result;
  result.step = step;
  result.k = 10;
  for (int k : {1, 10}) {
    Metrics& metrics = result.pass_at[k];
    metrics.valid = 1;
    metrics.compiled = 1;
    metrics.correct = k == 1 ? correct : std::min(1.0, correct + 0.2);
    metrics.fast_1 = 0.5;
    metrics.mean_speedup = 1.5;
    metrics.modelled = true;
    metrics.tasks = 8;
  }
  result.fused_share = 0.75;
  return result;
}

// Uses a fake trainer that records its arguments and writes the files of a finished run.
class ExperimentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = MakeTempDirectory("experiment").value();
    options_.output = dir_ + "/out";
    options_.trainer = dir_ + "/trainer";
    options_.overrides = {"steps=40"};
    for (int64_t step : {0, 40}) {
      absl::StrAppend(&evaluations_, MetricsLine(step, EvaluationFields(Result(step, step / 50.0))),
                      "\n");
    }
    ASSERT_TRUE(WriteFileAtomic(dir_ + "/evaluations", evaluations_).ok());
    WriteTrainer("mkdir -p $out/model && cp " + dir_ + "/evaluations $out/evaluations.jsonl && " +
                 "touch $out/model/config.json");
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  void WriteTrainer(const std::string& work) {
    const std::string script = absl::StrCat("#!/bin/sh\necho \"$@\" >> ", dir_, "/calls\n",
                                            "for a in \"$@\"; do case $a in output_dir=*) ",
                                            "out=${a#output_dir=};; esac; done\n", work, "\n");
    ASSERT_TRUE(WriteFileAtomic(options_.trainer, script).ok());
    ASSERT_EQ(chmod(options_.trainer.c_str(), 0755), 0);
  }
  std::string Calls() const { return ReadFile(dir_ + "/calls").value_or(""); }

  std::string dir_, evaluations_;
  ExperimentOptions options_;
};

TEST_F(ExperimentTest, UnknownTablesAndScalesAreNamed) {
  EXPECT_THAT(Message(FindExperiment("alpha", "mini").status()),
              HasSubstr("--table=alpha is not known; there is: reward_shape"));
  EXPECT_THAT(Message(FindExperiment("reward_shape", "8b").status()), HasSubstr("--scale=8b"));
}

TEST_F(ExperimentTest, TrainsEachArmOnceAndMakesTheTable) {
  const Experiment experiment = FindExperiment("reward_shape", "mini").value();
  ASSERT_EQ(experiment.arms.size(), 3);
  std::vector<ArmResult> results;
  for (const Arm& arm : experiment.arms) {
    auto result = RunArm(experiment, arm, options_);
    ASSERT_TRUE(result.ok()) << result.status();
    results.push_back(*result);
  }
  const std::string calls = Calls();
  EXPECT_THAT(calls, HasSubstr("--set steps=40 --set objective.reward_shape=HRD"));
  EXPECT_THAT(calls, HasSubstr("--set objective.reward_shape=UNIFORM --set objective.beta=0.5"));
  EXPECT_THAT(calls, HasSubstr("--set objective.beta=1 --set output_dir=" + options_.output +
                               "/uniform_beta_1.0"));
  // Complete arms are read from their folders.
  ASSERT_TRUE(RunArm(experiment, experiment.arms[0], options_).ok());
  EXPECT_EQ(Calls(), calls);

  const std::string table = ExperimentMarkdown(experiment, options_, results);
  EXPECT_THAT(table, HasSubstr("| Hierarchical    |"));
  EXPECT_THAT(table, HasSubstr("| Uniform         |"));
  EXPECT_THAT(table, HasSubstr("fast_1 / fast_2 (modelled)"));
  EXPECT_THAT(table, HasSubstr("100.0 / 100.0"));  // compiled / correct at k = 10
  EXPECT_THAT(table, HasSubstr("80.0"));           // correct at k = 1
  EXPECT_THAT(table, HasSubstr("pass@10"));
  EXPECT_THAT(table, HasSubstr("with steps=40"));
  EXPECT_THAT(table, HasSubstr("before training"));
}

TEST_F(ExperimentTest, AnArmThatFailsOrIsIncompleteIsAnError) {
  const Experiment experiment = FindExperiment("reward_shape", "mini").value();
  WriteTrainer("exit 3");
  EXPECT_THAT(Message(RunArm(experiment, experiment.arms[0], options_).status()),
              HasSubstr("training of 'hrd' ended with exit code 3"));
  WriteTrainer("mkdir -p $out");
  EXPECT_THAT(Message(RunArm(experiment, experiment.arms[0], options_).status()),
              HasSubstr("left no evaluation before and after"));
  // The stored results of a run with another number of steps are not used.
  WriteTrainer("mkdir -p $out/model && cp " + dir_ + "/evaluations $out/evaluations.jsonl && " +
               "touch $out/model/config.json");
  options_.overrides = {"steps=41"};
  EXPECT_FALSE(RunArm(experiment, experiment.arms[0], options_).ok());
}

TEST_F(ExperimentTest, AStopIsPassedOnToTheTrainer) {
  const Experiment experiment = FindExperiment("reward_shape", "mini").value();
  WriteTrainer("mkdir -p $out; trap 'touch $out.told; exit 75' TERM\ntouch " + dir_ +
               "/started\nwhile true; do sleep 0.05; done");
  options_.stopped = [this] { return FileExists(dir_ + "/started"); };
  EXPECT_TRUE(absl::IsCancelled(RunArm(experiment, experiment.arms[0], options_).status()));
  EXPECT_TRUE(FileExists(options_.output + "/hrd.told"));
}

TEST(MarkdownTableTest, PadsAndEscapes) {
  EXPECT_EQ(MarkdownTable({"a", "number"}, {{"long name", "1.5"}, {"x|y"}}),
            "| a         | number |\n"
            "|:----------|-------:|\n"
            "| long name |    1.5 |\n"
            "| x\\|y      |        |\n");
  EXPECT_EQ(Percent(0.7831), "78.3");
}

}  // namespace
}  // namespace tritonrl
