#include "exec/workers/worker_setup.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

namespace tritonrl {
namespace {

class StagedSourcesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = MakeTempDirectory("sources");
    ASSERT_TRUE(folder.ok()) << folder.status();
    folder_ = *folder;
    ASSERT_TRUE(WriteFileAtomic(JoinPath(folder_, "a.py"), "x = 1\n").ok());
    ASSERT_TRUE(WriteFileAtomic(JoinPath(folder_, "secret.txt"), "no\n").ok());
    ASSERT_TRUE(CreateDirectories(JoinPath(folder_, "sub")).ok());
    ASSERT_TRUE(WriteFileAtomic(JoinPath(folder_, "sub/b.py"), "y = 1\n").ok());
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(folder_).ok()); }

  std::string folder_;
};

TEST_F(StagedSourcesTest, CopiesPythonFilesReadableByAll) {
  std::string path;
  {
    auto staged = StagedSources::Create({folder_, JoinPath(folder_, "sub")});
    ASSERT_TRUE(staged.ok()) << staged.status();
    path = (*staged)->path();
    EXPECT_EQ(*ReadFile(JoinPath(path, "0/a.py")), "x = 1\n");
    EXPECT_EQ(*ReadFile(JoinPath(path, "0/sub/b.py")), "y = 1\n");
    EXPECT_EQ(*ReadFile(JoinPath(path, "1/b.py")), "y = 1\n");
    EXPECT_FALSE(FileExists(JoinPath(path, "0/secret.txt")));
    struct stat info;
    ASSERT_EQ(stat(JoinPath(path, "0/a.py").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0644);
  }
  EXPECT_FALSE(FileExists(path));
}

TEST_F(StagedSourcesTest, LeavesLiveCopiesAndRemovesThoseOfTheDead) {
  int report[2];
  ASSERT_EQ(pipe(report), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto staged = StagedSources::Create({folder_});
    const std::string path = staged.ok() ? (*staged)->path() : "failed";
    (void)!write(report[1], path.data(), path.size());
    _exit(0);  // no destructor runs, as after kill -9
  }
  char buffer[256];
  const ssize_t size = read(report[0], buffer, sizeof(buffer));
  ASSERT_GT(size, 0);
  waitpid(child, nullptr, 0);
  close(report[0]);
  close(report[1]);
  const std::string dead(buffer, size);
  EXPECT_TRUE(FileExists(dead)) << dead;

  auto first = StagedSources::Create({folder_});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(FileExists(dead)) << dead;
  auto second = StagedSources::Create({folder_});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(FileExists((*first)->path()));
  EXPECT_NE((*first)->id(), (*second)->id());
}

TEST_F(StagedSourcesTest, AMissingFolderIsNamed) {
  const auto staged = StagedSources::Create({JoinPath(folder_, "none")});
  EXPECT_NE(staged.status().message().find("/none"), absl::string_view::npos) << staged.status();
}

TEST(WorkerSetupTest, AGpuIsChosenByThePool) {
  const auto visible = [](const std::string& device, const std::string& gpu) {
    WorkerPoolOptions options;
    options.device = device;
    options.gpu = gpu;
    const auto config = MakeWorkerConfig(options, "/nonexistent");
    EXPECT_TRUE(config.ok()) << config.status();
    std::string value = "none";
    for (const auto& [name, text] : config->sandbox.env) {
      if (name == "CUDA_VISIBLE_DEVICES") value = text;
    }
    return value;
  };
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(visible("cuda", "3"), "3");
  EXPECT_EQ(visible("cuda", ""), "none");
  EXPECT_EQ(visible("cpu", "3"), "");
  setenv("CUDA_VISIBLE_DEVICES", "5,6", 1);
  EXPECT_EQ(visible("cuda", ""), "5,6");
  EXPECT_EQ(visible("cuda", "6"), "6");
  unsetenv("CUDA_VISIBLE_DEVICES");
}

}  // namespace
}  // namespace tritonrl
