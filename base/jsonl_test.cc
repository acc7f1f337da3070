#include "base/jsonl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {
namespace {

std::vector<Line> Read(const std::string& contents, int64_t max_bytes = 1 << 20) {
  const std::string path = testing::TempDir() + "/lines.txt";
  EXPECT_TRUE(WriteFileAtomic(path, contents).ok());
  auto reader = LineReader::Open(path, max_bytes);
  EXPECT_TRUE(reader.ok()) << reader.status();
  std::vector<Line> lines;
  while (reader.ok()) {
    auto line = (*reader)->Next();
    EXPECT_TRUE(line.ok()) << line.status();
    if (!line.ok() || !line->has_value()) break;
    lines.push_back(**line);
  }
  return lines;
}

TEST(LineReaderTest, NumbersOffsetsAndATornEnd) {
  EXPECT_TRUE(Read("").empty());
  const auto lines = Read("one\n\nthree");
  ASSERT_EQ(lines.size(), 3);
  EXPECT_EQ(lines[0].text, "one");
  EXPECT_EQ(lines[1].text, "");
  EXPECT_EQ(lines[1].offset, 4);
  EXPECT_TRUE(lines[1].complete);
  EXPECT_EQ(lines[2].text, "three");
  EXPECT_EQ(lines[2].number, 3);
  EXPECT_EQ(lines[2].offset, 5);
  EXPECT_FALSE(lines[2].complete);
}

TEST(LineReaderTest, LongLinesArePassedOverWithoutBeingHeld) {
  const std::string big(3 << 20, 'x');
  const auto lines = Read(absl::StrCat("a\n", big, "\nb\n", std::string(1 << 20, 'y'), "\n"));
  ASSERT_EQ(lines.size(), 4);
  EXPECT_TRUE(lines[1].too_long);
  EXPECT_EQ(lines[1].text, "");
  EXPECT_EQ(lines[2].text, "b");
  EXPECT_EQ(lines[2].offset, 2 + big.size() + 1);
  EXPECT_FALSE(lines[3].too_long);
  EXPECT_EQ(lines[3].text.size(), 1 << 20);
}

TEST(LineReaderTest, ManyLinesOverManyBlocks) {
  std::string text;
  for (int i = 0; i < 100000; ++i) absl::StrAppend(&text, "line ", i, "\n");
  const auto lines = Read(text);
  ASSERT_EQ(lines.size(), 100000);
  EXPECT_EQ(lines[77777].text, "line 77777");
  EXPECT_EQ(text.substr(lines[77777].offset, 10), "line 77777");
}

TEST(LineReaderTest, OnlyPlainFiles) {
  EXPECT_EQ(LineReader::Open(testing::TempDir(), 10).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::IsNotFound(LineReader::Open("/no/such/file", 10).status()));
}

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

TEST_F(JsonlJournalTest, MetricsLogCutsTornAndRepeatedLines) {
  std::string path = folder_ + "/metrics.jsonl";
  {
    auto log = MetricsLog::Open(path, 0).value();
    ASSERT_TRUE(log->Append(0, {{"loss", 1.5}, {"name", std::string("a\"b\xff")}}).ok());
    ASSERT_TRUE(log->Append(1, {{"loss", std::nan("")}, {"n", int64_t{7}}, {"ok", true}}).ok());
    ASSERT_TRUE(log->Append(2, {{"loss", 0.5}}).ok());
  }
  ASSERT_TRUE(AppendToFile(path, "{\"step\":3,\"lo").ok());
  {
    auto log = MetricsLog::Open(path, 2).value();
    ASSERT_TRUE(log->Append(2, {{"loss", 0.25}}).ok());
  }
  EXPECT_EQ(ReadFile(path).value(),
            "{\"step\":0,\"loss\":1.5,\"name\":\"a\\\"b\xef\xbf\xbd\"}\n"
            "{\"step\":1,\"loss\":null,\"n\":7,\"ok\":true}\n"
            "{\"step\":2,\"loss\":0.25}\n");
}

TEST_F(JsonlJournalTest, MetricsLogSaysWhenTheDiskIsFull) {
  ASSERT_EQ(symlink("/dev/full", (folder_ + "/metrics.jsonl").c_str()), 0);
  // Only an append is tested: reads of /dev/full return zero bytes without end.
  EXPECT_THAT(Message(AppendToFile(folder_ + "/metrics.jsonl", MetricsLine(0, {}))),
              testing::HasSubstr("No space left"));
}

}  // namespace
}  // namespace tritonrl
