// Whole runs: an interrupted run has the same results as an uninterrupted one.
#include "trainer/grpo/testing/grpo_hrd_fixture.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;

TEST_F(GrpoHrdTest, WholeRunThenKillsAndASignalChangeNothing) {
  const CommandResult whole = Run(Command("whole"));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  // The output has a line per step, both evaluations, the table and the paths of the files.
  EXPECT_THAT(whole.err, HasSubstr("3/3"));
  EXPECT_THAT(whole.err, HasSubstr("speedup"));
  EXPECT_THAT(whole.err, HasSubstr("Held-out tasks after 0 steps"));
  EXPECT_THAT(whole.err,
              HasSubstr("Training prompts: mini, 0 tokens of fixed text; the longest of"));
  EXPECT_THAT(whole.err, HasSubstr("Responses are read as thinking"));
  EXPECT_THAT(whole.out, HasSubstr("before      after    change"));
  EXPECT_THAT(whole.out, HasSubstr("(modelled)"));
  EXPECT_THAT(whole.out, HasSubstr("report.html"));
  for (const char* file : {"/report.html", "/config.textproto", "/versions.json",
                           "/model/config.json", "/model/tokenizer.json", "/tensorboard"}) {
    EXPECT_TRUE(FileExists(Out("whole") + file)) << file;
  }
  EXPECT_EQ(Lines(Out("whole") + "/metrics.jsonl"), kSteps);
  EXPECT_EQ(Lines(Out("whole") + "/samples/step_000001.jsonl"), 8);
  EXPECT_EQ(Lines(Out("whole") + "/samples/eval_000003.jsonl"), 4);
  // The policy was trained: some samples were correct, some were not, and the weights changed.
  std::set<Outcome::Reason> reasons;
  const auto records =
      MergeRecords({ReadFile(Out("whole") + "/samples/step_000001.jsonl").value()});
  ASSERT_TRUE(records.ok()) << records.status();
  for (const SampleRecord& record : *records) {
    reasons.insert(record.verdict.outcome().reason());
  }
  EXPECT_GT(reasons.size(), 1);
  EXPECT_TRUE(reasons.count(Outcome::OK) == 1);
  EXPECT_FALSE(
      ReadFile(Out("whole") + "/checkpoints/step_000002/model/model.safetensors").value() ==
      ReadFile(Out("whole") + "/model/model.safetensors").value());

  const std::string cut = Out("cut");
  // The run is killed during the first step, killed after some steps, and then stopped by a signal.
  EXPECT_EQ(
      SignalWhen("cut", SIGKILL, [&] { return Lines(cut + "/journal/verdicts_0.jsonl") >= 3; })
          .signal,
      SIGKILL);
  EXPECT_EQ(Lines(cut + "/metrics.jsonl"), 0);
  EXPECT_EQ(SignalWhen("cut", SIGKILL, [&] { return Lines(cut + "/metrics.jsonl") >= 2; }).signal,
            SIGKILL);
  const ExitStatus asked = SignalWhen("cut", SIGUSR1, [&] {
    return FileExists(cut + "/checkpoints/step_000003") ||
           Lines(cut + "/journal/verdicts_0.jsonl") > 1000;
  });
  EXPECT_EQ(asked.exit_code, 75);
  const CommandResult last = Run(Command("cut"));
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_THAT(last.err, HasSubstr("Resuming after step 3 of 3."));
  ExpectSameRun("whole", "cut");

  // The same command again trains nothing and shows the table again.
  const CommandResult again = Run(Command("cut"));
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("before      after    change"));
  ExpectSameRun("whole", "cut");

  // Another learning rate in the same folder is refused.
  const CommandResult other = Run(Command("cut", {"optimizer.learning_rate=1e-3"}));
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err, HasSubstr("begun with another configuration"));
  EXPECT_THAT(other.err, HasSubstr("learning_rate"));
}

}  // namespace
}  // namespace tritonrl
