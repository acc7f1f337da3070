#include "trainer/run/training_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/file.h"
#include "trainer/config/text_proto.h"
#include "trainer/testing/test_model.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;

class TrainingRunTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = MakeTempDirectory("training_run").value();
    WriteTinyModel(dir_ + "/model");
    config_.set_output_dir(dir_ + "/run");
    *config_.mutable_policy() = TinyPolicyConfig(dir_ + "/model");
    config_.set_steps(10);
    config_.set_threads(1);
    *config_.mutable_checkpoint() = CheckpointConfig();
    config_.mutable_checkpoint()->set_every(2);
  }
  void TearDown() override { RemoveTree(dir_).IgnoreError(); }

  std::unique_ptr<TrainingRun> MakeRun(const SftConfig& config) {
    return std::make_unique<TrainingRun>(TrainingRunOptions{.program = "test",
                                                            .progress_label = "test",
                                                            .first_step_number = 1,
                                                            .derived_files = {"derived.jsonl"}},
                                         config, ranks_.get(), ranks_.get(), stop_);
  }
  absl::Status Open(const SftConfig& config) { return MakeRun(config)->OpenFolder(); }
  std::string StoredConfig() { return ReadFile(dir_ + "/run/config.textproto").value(); }

  // A run that is ready for its first step.
  std::unique_ptr<TrainingRun> StartRun(const SftConfig& config) {
    std::unique_ptr<TrainingRun> run = MakeRun(config);
    EXPECT_TRUE(run->OpenFolder().ok());
    EXPECT_TRUE(run->LoadPolicy().ok());
    EXPECT_TRUE(run->MakeOptimizer(/*max_sequence_tokens=*/64).ok());
    const absl::Status resumed = run->Resume(config.steps(), {{"entry", "value"}});
    EXPECT_TRUE(resumed.ok()) << resumed;
    run->StartProgress();
    return run;
  }
  static void Step(TrainingRun* run) {
    run->BeginUpdate();
    ASSERT_TRUE(run->Log({{"loss", 1.0}}, "text").ok());
    run->CompleteStep(/*consecutive_skipped=*/3);
    ASSERT_TRUE(run->Checkpoint().ok());
  }

  std::string dir_;
  SftConfig config_;
  const SignalHandler stop_;
  std::unique_ptr<ProcessGroup> ranks_ = ProcessGroup::SingleProcess();
};

TEST_F(TrainingRunTest, AFolderWithoutACheckpointTakesAnyConfiguration) {
  ASSERT_TRUE(Open(config_).ok());
  const std::string derived = dir_ + "/run/derived.jsonl";
  ASSERT_TRUE(WriteFileAtomic(derived, "{}\n").ok());
  ASSERT_TRUE(Open(config_).ok());
  EXPECT_TRUE(FileExists(derived));
  config_.set_seed(7);
  ASSERT_TRUE(Open(config_).ok());
  EXPECT_FALSE(FileExists(derived));
  EXPECT_EQ(StoredConfig(), FullText(config_));
}

TEST_F(TrainingRunTest, AResumedRunMayDifferInWhatIsNotLearned) {
  ASSERT_TRUE(Open(config_).ok());
  ASSERT_TRUE(CreateDirectories(dir_ + "/run/checkpoints/step_000002").ok());
  SftConfig other = config_;
  other.set_steps(20);
  other.set_threads(2);
  other.set_data_threads(3);
  other.set_memory_gib(1);
  other.mutable_checkpoint()->set_keep(5);
  EXPECT_TRUE(Open(other).ok());
  EXPECT_EQ(StoredConfig(), FullText(other));
  // The run cannot be made shorter again.
  const absl::Status shorter = Open(config_);
  EXPECT_TRUE(absl::IsFailedPrecondition(shorter)) << shorter;
  EXPECT_THAT(std::string(shorter.message()), HasSubstr("steps: 20 -> 10"));
  other.mutable_optimizer()->set_learning_rate(0.5);
  other.set_threads(1);
  const absl::Status refused = Open(other);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("was begun with another configuration (modified: optimizer.learning_rate: "
                        "0.0001 -> 0.5)"));
}

TEST_F(TrainingRunTest, AResumedRunMayHaveMoreEpochs) {
  config_.set_steps(0);
  ASSERT_TRUE(Open(config_).ok());
  ASSERT_TRUE(CreateDirectories(dir_ + "/run/checkpoints/step_000002").ok());
  config_.set_epochs(2);
  EXPECT_TRUE(Open(config_).ok());
  config_.set_epochs(1);
  EXPECT_THAT(std::string(Open(config_).message()), HasSubstr("epochs: 2 -> 1"));
}

TEST_F(TrainingRunTest, ResumesAfterTheNewestCheckpoint) {
  {
    const auto run = StartRun(config_);
    EXPECT_EQ(run->step(), 0);
    for (int i = 0; i < 3; ++i) Step(run.get());
    ASSERT_TRUE(run->FinishCheckpoint().ok());
  }
  {
    const auto run = StartRun(config_);
    EXPECT_EQ(run->step(), 2);
    EXPECT_EQ(run->consecutive_skipped(), 3);
    Step(run.get());
    // The failed step is not saved; the steps before it are.
    run->BeginUpdate();
    EXPECT_TRUE(absl::IsAborted(run->Fail(absl::AbortedError("lost"))));
    EXPECT_EQ(run->step(), 3);
    run->CancelUpdate();
    EXPECT_TRUE(absl::IsAborted(run->Fail(absl::AbortedError("lost"))));
  }
  const auto run = StartRun(config_);
  EXPECT_EQ(run->step(), 3);
  const auto text = ReadFile(dir_ + "/run/metrics.jsonl").value();
  EXPECT_THAT(text, HasSubstr("\"step\":3,"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  const auto outcome = run->Finish(/*stopped=*/false);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->steps, 3);
  EXPECT_TRUE(FileExists(outcome->model_dir + "/model.safetensors"));
}

}  // namespace
}  // namespace tritonrl
