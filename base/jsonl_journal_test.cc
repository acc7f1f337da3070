#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/file.h"
#include "base/jsonl.h"

namespace tritonrl {
namespace {

constexpr int64_t kMaxBytes = 100;

class LineFileTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = MakeTempDirectory("line_file");
    ASSERT_TRUE(folder.ok());
    folder_ = *folder;
    path_ = folder_ + "/lines";
  }
  void TearDown() override { ASSERT_TRUE(RemoveTree(folder_).ok()); }

  absl::StatusOr<std::unique_ptr<JsonlJournal>> Open() {
    seen_.clear();
    return JsonlJournal::Open(path_, kMaxBytes, [this](const Line& line) {
      seen_.push_back(line.too_long ? "too long" : line.text);
      return line.text == "bad" ? absl::DataLossError("bad") : absl::OkStatus();
    });
  }

  std::string folder_, path_;
  std::vector<std::string> seen_;
};

TEST_F(LineFileTest, GoesOnAfterATornLine) {
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

TEST_F(LineFileTest, BelongsToOneWriter) {
  auto file = Open();
  ASSERT_TRUE(file.ok());
  const auto second = Open();
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
  EXPECT_THAT(std::string(second.status().message()), testing::HasSubstr("another process"));
}

TEST_F(LineFileTest, AForeignLineAndWhatIsNoFileAreErrors) {
  ASSERT_TRUE(WriteFileAtomic(path_, "fine\nbad\nnever seen\n").ok());
  EXPECT_TRUE(absl::IsDataLoss(Open().status()));
  EXPECT_THAT(seen_, testing::ElementsAre("fine", "bad"));
  EXPECT_FALSE(JsonlJournal::Create(folder_).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(JsonlJournal::Create("/dev/null").status()));
}

TEST_F(LineFileTest, CreateBeginsAnewAndMakesItsFolder) {
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
