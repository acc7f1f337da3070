#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/jsonl.h"

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

}  // namespace
}  // namespace tritonrl
