#include "base/disk_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <memory>
#include <string>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/status.h"

namespace tritonrl {
namespace {

using testing::HasSubstr;

class DiskRoomTest : public testing::Test {
 protected:
  void SetUp() override { path_ = (folder_ = *MakeTempDirectory("room")) + "/file"; }
  void TearDown() override { EXPECT_TRUE(RemoveTree(folder_).ok()); }

  // Bytes that the file has on the disk.
  int64_t OnDisk() const {
    struct stat info = {};
    EXPECT_EQ(stat(path_.c_str(), &info), 0);
    return int64_t{info.st_blocks} * 512;
  }

  std::string folder_, path_;
};

TEST_F(DiskRoomTest, TheSizeStaysAndTheEndFreesTheRoom) {
  ASSERT_TRUE(AppendToFile(path_, "line\n").ok());
  {
    DiskRoom room(path_);
    ASSERT_TRUE(room.Reserve(1 << 20).ok());
    if (OnDisk() < 1 << 20) GTEST_SKIP() << "this file system cannot reserve";
    EXPECT_EQ(*FileSize(path_), 5);
    ASSERT_TRUE(AppendToFile(path_, "more\n").ok());
    EXPECT_GE(OnDisk(), 1 << 20);
  }
  EXPECT_EQ(*ReadFile(path_), "line\nmore\n");
  EXPECT_LT(OnDisk(), 1 << 20);
}

TEST_F(DiskRoomTest, ALimitThatIsReachedIsOneSentence) {
  ASSERT_TRUE(AppendToFile(path_, "line\n").ok());
  rlimit old = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit small = {.rlim_cur = 1000, .rlim_max = old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  DiskRoom room(path_);
  const absl::Status fits = room.Reserve(995), more = room.Reserve(20000);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  EXPECT_TRUE(fits.ok()) << fits;
  EXPECT_TRUE(absl::IsResourceExhausted(more));
  EXPECT_EQ(Message(more), "cannot write " + path_ +
                               ": File too large; it needs room for 20.0 kB; make room there and "
                               "run the same command again");
}

TEST_F(DiskRoomTest, AJournalFreesItsRoomWhenItCloses) {
  const auto none = [](const Line&) -> absl::StatusOr<bool> { return true; };
  {
    auto journal = JsonlJournal::Open(path_, 1000, none);
    ASSERT_TRUE(journal.ok()) << journal.status();
    ASSERT_TRUE((*journal)->Reserve(1 << 20).ok());
    ASSERT_TRUE((*journal)->Append("{}").ok());
  }
  EXPECT_EQ(*ReadFile(path_), "{}\n");
  EXPECT_LT(OnDisk(), 1 << 20);
}

TEST_F(DiskRoomTest, AFolderThatIsMissingIsNamed) {
  DiskRoom room(folder_ + "/none/file");
  EXPECT_THAT(Message(room.Reserve(10)), HasSubstr("cannot write " + folder_ + "/none/file"));
}

TEST(BytesTextTest, HasAUnit) {
  EXPECT_EQ(BytesText(1), "1 byte");
  EXPECT_EQ(BytesText(999), "999 bytes");
  EXPECT_EQ(BytesText(1500), "1.5 kB");
  EXPECT_EQ(BytesText(16777216), "16.8 MB");
  EXPECT_EQ(BytesText(3000000000), "3.0 GB");
}

}  // namespace
}  // namespace tritonrl
