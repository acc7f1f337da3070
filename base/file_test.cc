#include "base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

namespace tritonrl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override { dir_ = MakeTempDirectory("file_test").value(); }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }
  std::string dir_;
};

TEST_F(FileTest, WritesReadsAppends) {
  std::string path = dir_ + "/a";
  ASSERT_TRUE(WriteFileAtomic(path, "one\n").ok());
  ASSERT_TRUE(AppendToFile(path, "two\n").ok());
  EXPECT_EQ(ReadFile(path).value(), "one\ntwo\n");
  EXPECT_EQ(FileSize(path).value(), 8);
  ASSERT_TRUE(WriteFileAtomic(path, "three").ok());
  EXPECT_EQ(ReadFile(path).value(), "three");
  EXPECT_THAT(ListDirectory(dir_).value(), ElementsAre("a"));  // no temporary file is left
}

TEST_F(FileTest, ErrorsNamePathAndReason) {
  EXPECT_EQ(Message(ReadFile(dir_ + "/none").status()),
            "cannot read " + dir_ + "/none: No such file or directory");
  EXPECT_EQ(ReadFile(dir_ + "/none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(WriteFileAtomic(dir_ + "/no/file", "x")), HasSubstr(dir_ + "/no/file"));
  ASSERT_TRUE(WriteFileAtomic(dir_ + "/f", "x").ok());
  EXPECT_THAT(Message(CreateDirectories(dir_ + "/f/g")), HasSubstr(dir_ + "/f is a file"));
}

TEST_F(FileTest, AFailedReplacementKeepsTheOldFile) {
  const std::string path = dir_ + "/a";
  ASSERT_TRUE(WriteFileAtomic(path, "old", 0600).ok());
  EXPECT_TRUE(absl::IsCancelled(ReplaceFile(path, [&](int fd) -> absl::Status {
    EXPECT_TRUE(WriteAll(fd, "half of the new", path).ok());
    return absl::CancelledError("");
  })));
  EXPECT_EQ(ReadFile(path).value(), "old");
  EXPECT_THAT(ListDirectory(dir_).value(), ElementsAre("a"));
}

TEST_F(FileTest, ReadsExactlyAtAnOffset) {
  const std::string path = dir_ + "/a";
  ASSERT_TRUE(WriteFileAtomic(path, "abcdef").ok());
  const ScopedFd fd(open(path.c_str(), O_RDONLY));
  char bytes[3] = {};
  ASSERT_TRUE(ReadAt(fd.get(), 2, 3, bytes, path).ok());
  EXPECT_EQ(std::string(bytes, 3), "cde");
  EXPECT_TRUE(absl::IsDataLoss(ReadAt(fd.get(), 4, 3, bytes, path)));
}

TEST_F(FileTest, FullDiskIsResourceExhausted) {
  absl::Status status = AppendToFile("/dev/full", "x");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(status),
            "cannot write /dev/full: No space left on device; make room there and run the same "
            "command again");
}

// RLIMIT_FSIZE simulates a disk that becomes full in the middle of a line.
TEST_F(FileTest, AnAppendThatFailsLeavesNoPartOfALine) {
  const std::string path = dir_ + "/lines";
  ASSERT_TRUE(AppendToFile(path, "first\n").ok());
  rlimit old = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {.rlim_cur = 10, .rlim_max = old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_FALSE(AppendToFile(path, "a longer line\n").ok());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  signal(SIGXFSZ, old_handler);
  EXPECT_EQ(*ReadFile(path), "first\n");
  ASSERT_TRUE(AppendToFile(path, "second\n").ok());
  EXPECT_EQ(*ReadFile(path), "first\nsecond\n");
}

TEST_F(FileTest, RemovesTreesButNotWhatLinksPointTo) {
  ASSERT_TRUE(CreateDirectories(dir_ + "/t/a/b").ok());
  ASSERT_TRUE(WriteFileAtomic(dir_ + "/t/a/b/file", "x").ok());
  ASSERT_TRUE(WriteFileAtomic(dir_ + "/kept", "x").ok());
  ASSERT_EQ(symlink(dir_.c_str(), (dir_ + "/t/link").c_str()), 0);
  EXPECT_TRUE(RemoveTree(dir_ + "/t").ok());
  EXPECT_TRUE(RemoveTree(dir_ + "/t").ok());
  EXPECT_THAT(ListDirectory(dir_).value(), ElementsAre("kept"));
}

TEST_F(FileTest, PathParts) {
  EXPECT_EQ(BaseName("/a/b"), "b");
  EXPECT_EQ(DirName("/a/b"), "/a");
  EXPECT_EQ(DirName("/a"), "/");
  EXPECT_EQ(DirName("a"), ".");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("a", "/b"), "/b");
}

TEST_F(FileTest, UserPathIsTakenFromWhereTheUserStands) {
  setenv("BUILD_WORKING_DIRECTORY", "/somewhere", 1);
  EXPECT_EQ(UserPath("x/y"), "/somewhere/x/y");
  EXPECT_EQ(UserPath("/x"), "/x");
  unsetenv("BUILD_WORKING_DIRECTORY");
}

}  // namespace
}  // namespace tritonrl
