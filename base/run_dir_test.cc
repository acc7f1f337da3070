#include "base/run_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;

class RunDirTest : public ::testing::Test {
 protected:
  void SetUp() override { dir_ = MakeTempDirectory("run_dir_test").value(); }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }
  std::string dir_;
};

TEST_F(RunDirTest, CreateThenResume) {
  std::string path = dir_ + "/a/run";
  {
    auto run = RunDir::Open(path, /*resume=*/false).value();
    EXPECT_FALSE(run->resumed());
    EXPECT_TRUE(WriteFileAtomic(run->config_path(), "steps: 1\n").ok());
    EXPECT_TRUE(run->WriteVersions({{"torch", "2.11.0"}}).ok());
    EXPECT_TRUE(DirectoryExists(path + "/samples"));
    EXPECT_TRUE(DirectoryExists(path + "/checkpoints"));
    EXPECT_TRUE(DirectoryExists(path + "/tensorboard"));
  }
  EXPECT_EQ(RunDir::Open(path, /*resume=*/false).status().code(), absl::StatusCode::kAlreadyExists);
  auto run = RunDir::Open(path, /*resume=*/true).value();
  EXPECT_TRUE(run->resumed());
  EXPECT_TRUE(run->WriteVersions({{"torch", "2.11.0"}}).ok());
  auto versions = nlohmann::json::parse(ReadFile(run->versions_path()).value());
  ASSERT_EQ(versions.size(), 2);
  EXPECT_EQ(versions[1]["torch"], "2.11.0");
}

TEST_F(RunDirTest, SecondRunIsRefusedUntilTheFirstIsGoneEvenByKill) {
  std::string path = dir_ + "/run";
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  pid_t child = fork();
  if (child == 0) {
    auto run = RunDir::Open(path, /*resume=*/true);
    (void)!write(ready[1], run.ok() ? "y" : "n", 1);
    while (true) pause();
  }
  char answer = 0;
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  EXPECT_THAT(Message(RunDir::Open(path, /*resume=*/true).status()),
              HasSubstr("in use by process " + std::to_string(child)));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(RunDir::Open(path, /*resume=*/true).ok());
  close(ready[0]);
  close(ready[1]);
}

TEST_F(RunDirTest, FolderThatCannotBeMadeIsNamed) {
  ASSERT_TRUE(WriteFileAtomic(dir_ + "/file", "x").ok());
  EXPECT_THAT(Message(RunDir::Open(dir_ + "/file/run", /*resume=*/false).status()),
              HasSubstr(dir_ + "/file is a file"));
}

std::string Printed(int tty) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  absl::Time now = absl::UnixEpoch();
  {
    ProgressOptions options;
    options.label = "train";
    options.total = 4;
    options.out = out;
    options.now = [&] { return now; };
    options.force_tty = tty;
    Progress progress(options);
    now += absl::Seconds(30);
    progress.Tick(0, "rollout");
    progress.Tick(0, "verify");  // not printed: too soon after the last Tick
    progress.Line(1, "reward 0.5");
    progress.Print("saved");
    progress.Tick(1, "rollout");  // not printed: too soon after Print
    now += absl::Seconds(90);
    progress.Line(4, "end");
  }
  std::fclose(out);
  std::string result(text, size);
  free(text);
  return result;
}

TEST(ProgressTest, LinesAndBars) {
  EXPECT_EQ(Printed(0),
            "train [----------------] 0/4  rollout\n"
            "train [####------------] 1/4 1m30s left  reward 0.5\n"
            "saved\n"
            "train [################] 4/4 took 2m00s  end\n");
  EXPECT_EQ(Printed(1),
            "train [----------------] 0/4  rollout"
            "\r\033[Ktrain [####------------] 1/4 1m30s left  reward 0.5\n"
            "saved\n"
            "train [################] 4/4 took 2m00s  end\n");
  EXPECT_EQ(ShortDuration(absl::Seconds(7500)), "2h05m");
}

}  // namespace
}  // namespace tritonrl
