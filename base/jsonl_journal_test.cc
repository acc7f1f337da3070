#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/file.h"
#include "base/jsonl.h"

namespace tritonrl {
namespace {

using Lock = JsonlJournal::Lock;

constexpr int64_t kMaxBytes = 100;

class JsonlJournalTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = MakeTempDirectory("jsonl_journal");
    ASSERT_TRUE(folder.ok());
    folder_ = *folder;
    path_ = folder_ + "/lines";
  }
  void TearDown() override { ASSERT_TRUE(RemoveTree(folder_).ok()); }

  absl::StatusOr<std::unique_ptr<JsonlJournal>> Open(Lock lock = Lock::kExclusive) {
    seen_.clear();
    return JsonlJournal::Open(
        path_, kMaxBytes,
        [this](const Line& line) -> absl::StatusOr<bool> {
          seen_.push_back(line.too_long ? "too long" : line.text);
          if (line.text == "bad") return absl::DataLossError("bad");
          return line.text != "drop";
        },
        lock);
  }

  std::string folder_, path_;
  std::vector<std::string> seen_;
};

TEST_F(JsonlJournalTest, GoesOnAfterATornLine) {
  {
    auto file = Open();
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE((*file)->Append("one").ok());
    EXPECT_TRUE((*file)->Append(std::string(2 * kMaxBytes, 'x')).ok());
  }
  ASSERT_TRUE(AppendToFile(path_, "torn").ok());
  {
    auto file = Open();
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_THAT(seen_, testing::ElementsAre("one", "too long"));
    EXPECT_TRUE((*file)->Append("three").ok());
  }
  EXPECT_EQ(*ReadFile(path_), "one\n" + std::string(2 * kMaxBytes, 'x') + "\nthree\n");
}

TEST_F(JsonlJournalTest, BelongsToOneWriter) {
  auto file = Open();
  ASSERT_TRUE(file.ok());
  const auto second = Open();
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
  EXPECT_THAT(std::string(second.status().message()), testing::HasSubstr("another process"));
}

TEST_F(JsonlJournalTest, AForeignLineAndWhatIsNoFileAreErrors) {
  ASSERT_TRUE(WriteFileAtomic(path_, "fine\nbad\nnever seen\n").ok());
  EXPECT_TRUE(absl::IsDataLoss(Open().status()));
  EXPECT_THAT(seen_, testing::ElementsAre("fine", "bad"));
  EXPECT_FALSE(JsonlJournal::Create(folder_).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(JsonlJournal::Create("/dev/null").status()));
}

TEST_F(JsonlJournalTest, DroppedLinesLeaveTheFile) {
  const std::string big(2 * kMaxBytes, 'x');
  for (const Lock lock : {Lock::kExclusive, Lock::kNone}) {
    ASSERT_TRUE(WriteFileAtomic(path_, "drop\none\ndrop\n" + big + "\ntwo\ndrop\ntorn").ok());
    auto file = Open(lock);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(seen_.size(), 6);
    EXPECT_TRUE((*file)->AppendLines({"three", "four"}).ok());
    EXPECT_EQ(*ReadFile(path_), "one\n" + big + "\ntwo\nthree\nfour\n");
  }
}

TEST_F(JsonlJournalTest, WithoutALockTheFirstAppendMakesTheFileAndWritersShareIt) {
  auto first = Open(Lock::kNone), second = Open(Lock::kNone);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_FALSE(FileExists(path_));
  EXPECT_TRUE((*first)->AppendLines({}).ok());
  EXPECT_EQ(*ReadFile(path_), "");
  EXPECT_TRUE((*first)->Append("one").ok());
  EXPECT_TRUE((*second)->Append("two").ok());
  EXPECT_EQ(*ReadFile(path_), "one\ntwo\n");
}

TEST_F(JsonlJournalTest, CreateBeginsAnewAndMakesItsFolder) {
  const std::string deeper = folder_ + "/a/b/lines";
  for (int i = 0; i < 2; ++i) {
    auto file = JsonlJournal::Create(deeper);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE((*file)->Append("only").ok());
  }
  EXPECT_EQ(*ReadFile(deeper), "only\n");
}

}  // namespace
}  // namespace tritonrl
