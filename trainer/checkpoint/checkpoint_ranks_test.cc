// Tests the optimizer's state sharded over ranks: updates and checkpoints equal those of one
// process, and a run resumes from a checkpoint with any number of ranks.
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "gtest/gtest.h"
#include "parallel/testing/mpi_launch.h"

namespace tritonrl {
namespace {

class CheckpointRanks : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto dir = MakeTempDirectory("checkpoint_ranks");
    ASSERT_TRUE(dir.ok());
    dir_ = *dir;
  }
  void TearDown() override { RemoveTree(dir_).IgnoreError(); }

  CommandResult Run(int ranks, const std::string& folder, int updates, const std::string& save,
                    const std::string& stage = "") {
    const auto program = Runfile("trainer/testing/checkpoint_ranks_test_program");
    EXPECT_TRUE(program.ok()) << program.status();
    const std::string path = JoinPath(dir_, folder);
    EXPECT_TRUE(CreateDirectories(path).ok());
    std::vector<std::string> argv = {*program, path, GetParam() + stage, absl::StrCat(updates),
                                     save};
    if (ranks > 1) argv = MpirunCommand(ranks, argv);
    RunCommandOptions options;
    options.timeout = absl::Seconds(50);
    options.env = MpiTestEnvironment();
    auto result = RunCommand(argv, options);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : CommandResult();
  }

  // The output line of a successful run.
  std::string Line(int ranks, const std::string& folder, int updates, const std::string& save,
                   const std::string& stage = "") {
    const CommandResult result = Run(ranks, folder, updates, save, stage);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }

  std::string dir_;
};

// The gradients' sums are exact and no gradient is clipped, so the results are bitwise those of one
// process for any number of ranks.
TEST_P(CheckpointRanks, GoesOnWithAnyNumberOfRanks) {
  const std::string whole = Line(1, "one", 5, "leave");
  EXPECT_EQ(whole.substr(0, 6), "step 5");
  EXPECT_EQ(Line(2, "two", 5, "leave"), whole);
  const std::string half = Line(2, "chain", 2, "save");
  EXPECT_TRUE(FileExists(dir_ + "/chain/checkpoints/step_000002/optimizer_001_of_002.bin"));
  EXPECT_EQ(Line(3, "chain", 0, "leave"), half);
  Line(3, "chain", 1, "save");
  Line(1, "chain", 1, "save");
  EXPECT_TRUE(FileExists(dir_ + "/chain/checkpoints/step_000004/optimizer.bin"));
  EXPECT_EQ(Line(2, "chain", 1, "leave"), whole);
}

TEST_P(CheckpointRanks, OneThatLacksARanksFileIsPassedOver) {
  const std::string first = Line(2, "lost", 1, "save");
  Line(2, "lost", 1, "save");
  const std::string file = dir_ + "/lost/checkpoints/step_000002/optimizer_001_of_002.bin";
  ASSERT_EQ(unlink(file.c_str()), 0);
  EXPECT_EQ(Line(2, "lost", 0, "leave"), first);
  // With no valid checkpoint left all ranks fail and none hangs.
  const std::string other = dir_ + "/lost/checkpoints/step_000001/optimizer_000_of_002.bin";
  ASSERT_EQ(truncate(other.c_str(), 100), 0);
  const CommandResult none = Run(2, "lost", 0, "leave");
  EXPECT_NE(none.exit_code, 0);
  EXPECT_NE(none.err.find("can be used"), std::string::npos) << none.err;
}

// The ZeRO stage does not change the state.
class CheckpointRanksZero : public CheckpointRanks {};

TEST_P(CheckpointRanksZero, GoesOnWithTheOtherStage) {
  const std::string whole = Line(1, "one", 3, "leave");
  Line(2, "chain", 1, "save", "_zero2");
  Line(3, "chain", 1, "save");
  EXPECT_EQ(Line(3, "chain", 1, "leave", "_zero2"), whole);
}

// Checkpoints written during training; these tests do not depend on the type of the weights.
class CheckpointRanksBackground : public CheckpointRanks {};

TEST_P(CheckpointRanksBackground, IsTheStateOfItsBeginningOnAllRanks) {
  const std::string two = Line(1, "one", 2, "leave");
  const std::string three = Line(1, "one", 3, "leave");
  const std::string line = Line(2, "background", 2, "background");
  EXPECT_EQ(line.substr(0, 6), "step 2");
  EXPECT_EQ(line.substr(6), three.substr(6));  // training went on
  EXPECT_EQ(Line(1, "background", 0, "leave"), two);
}

TEST_P(CheckpointRanksBackground, AFullDiskOfOneRankIsReportedByAllAndLosesNothing) {
  const std::string first = Line(2, "full", 1, "save");
  const CommandResult failed = Run(2, "full", 1, "full");
  EXPECT_NE(failed.exit_code, 0);
  for (const char* part :
       {"the checkpoint of step 2 was not written: rank 1: ", "optimizer_001_of_002.bin",
        "File too large", "the checkpoint of step 1 is intact"}) {
    EXPECT_NE(failed.err.find(part), std::string::npos) << failed.err;
  }
  EXPECT_EQ(*ListDirectory(dir_ + "/full/checkpoints"), std::vector<std::string>{"step_000001"});
  EXPECT_EQ(Line(1, "full", 0, "leave"), first);
}

INSTANTIATE_TEST_SUITE_P(Types, CheckpointRanks, testing::Values("fp32", "bf16"),
                         [](const auto& type) { return type.param; });

INSTANTIATE_TEST_SUITE_P(Types, CheckpointRanksZero, testing::Values("bf16"),
                         [](const auto& type) { return type.param; });

INSTANTIATE_TEST_SUITE_P(Types, CheckpointRanksBackground, testing::Values("bf16"),
                         [](const auto& type) { return type.param; });

}  // namespace
}  // namespace tritonrl
