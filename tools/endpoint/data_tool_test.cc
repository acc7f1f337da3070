#include "tools/endpoint/data_tool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace tritonrl {
namespace {

using testing::HasSubstr;

TEST(DataToolTest, MissingFlagsAreNamed) {
  EXPECT_EQ(LoadTasksFlag("").status().message(), "--tasks is missing: a folder of tasks");
  EXPECT_THAT(LoadTasksFlag("/no/such/folder").status().message(), HasSubstr("--tasks: "));
  EXPECT_EQ(OutFolderFlag("", "").status().message(), "--out is missing: a folder for the results");
  EXPECT_THAT(OutFolderFlag("/dev/null/x", "").status().message(), HasSubstr("--out: "));
  EXPECT_EQ(OutFolderFlag("/tmp/", "/tmp").status().message(),
            "--out and --tasks are the same folder");
}

TEST(DataToolTest, APromptNeedsItsPlaceholder) {
  const auto folder = MakeTempDirectory("data_tool_");
  ASSERT_TRUE(folder.ok());
  const std::string file = *folder + "/prompt.txt";
  ASSERT_TRUE(WriteFileAtomic(file, "Label it.").ok());
  EXPECT_THAT(ReadTaskPrompt(file, "").status().message(), HasSubstr("lacks {task}"));
  ASSERT_TRUE(WriteFileAtomic(file, "Label {task}.").ok());
  EXPECT_EQ(FillTask(*ReadTaskPrompt(file, ""), "x = {task}"), "Label x = {task}.");
  EXPECT_TRUE(RemoveTree(*folder).ok());
}

TEST(DataToolTest, SeedsDifferByTaskAndSampleAndAreSmall) {
  EXPECT_EQ(SampleSeed(1, "a", 0), SampleSeed(1, "a", 0));
  EXPECT_NE(SampleSeed(1, "a", 0), SampleSeed(1, "a", 1));
  EXPECT_NE(SampleSeed(1, "a", 0), SampleSeed(1, "b", 0));
  EXPECT_NE(SampleSeed(1, "a", 0), SampleSeed(2, "a", 0));
  for (int i = 0; i < 100; ++i) {
    EXPECT_GE(SampleSeed(3, "t", i), 0);
    EXPECT_LT(SampleSeed(3, "t", i), int64_t{1} << 31);
  }
}

TEST(DataToolTest, ColumnsAreAligned) {
  EXPECT_EQ(TwoColumns({{"a", "100"}, {"long name", "7"}}), "a          100\nlong name    7\n");
}

TEST(DataToolTest, ExitCodesTellWhoIsWrong) {
  EXPECT_EQ(RunDataTool("t", [] { return absl::StatusOr<bool>(true); }), 0);
  EXPECT_EQ(RunDataTool("t", [] { return absl::StatusOr<bool>(false); }), 75);
  EXPECT_EQ(
      RunDataTool("t", [] { return absl::StatusOr<bool>(absl::InvalidArgumentError("flag")); }), 2);
  EXPECT_EQ(RunDataTool("t", [] { return absl::StatusOr<bool>(absl::UnavailableError("down")); }),
            1);
}

}  // namespace
}  // namespace tritonrl
