#include "eval/tables/published.h"

#include <string>

#include "base/file.h"
#include "base/runfiles.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tritonrl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kHeader[] = "table,row,level,k,metric,value,tex_line\n";

Published Paper() {
  const auto path = Runfile("eval/published/paper.csv");
  EXPECT_TRUE(path.ok()) << path.status();
  auto published = Published::Load(*path);
  EXPECT_TRUE(published.ok()) << published.status();
  return *std::move(published);
}

absl::StatusOr<Published> LoadText(const std::string& text) {
  const std::string path = JoinPath(::testing::TempDir(), "published.csv");
  EXPECT_TRUE(WriteFileAtomic(path, text).ok());
  return Published::Load(path);
}

TEST(PublishedTest, FindsCellsOfThePaper) {
  const Published paper = Paper();
  EXPECT_EQ(paper.size(), 914);
  EXPECT_DOUBLE_EQ(paper.Find("main", "TritonRL (D), 8B", 1, "correct", 10).value(), 0.78);
  EXPECT_DOUBLE_EQ(paper.Find("main", "TritonRL (D), 8B", 2, "mean_speedup", 10).value(), 0.32);
  EXPECT_DOUBLE_EQ(paper.Find("data_mixture", "Level 1+2, [0.5, 0.5]", 2, "fast_1", 10).value(),
                   0.09);
  EXPECT_EQ(paper.Find("main", "TritonRL (D), 8B", 3, "correct", 10), std::nullopt);
  EXPECT_EQ(paper.Find("main", "TritonRL (D), 8B", 1, "correct", 5), std::nullopt);
}

TEST(PublishedTest, ListsTheRowsOfATable) {
  EXPECT_THAT(Paper().Rows("reward_assignment"),
              ElementsAre("speedup-correct (ours)", "speedup-speedup"));
  EXPECT_THAT(Paper().Rows("main"), SizeIs(14));
  EXPECT_THAT(Paper().Rows("mai"), IsEmpty());
}

TEST(PublishedTest, ReadsQuotes) {
  const auto published =
      LoadText(std::string(kHeader) + "a,\"say \"\"x\"\", y\",1,1,valid,9.5,3\n");
  ASSERT_TRUE(published.ok()) << published.status();
  EXPECT_DOUBLE_EQ(published->Find("a", "say \"x\", y", 1, "valid", 1).value(), 0.095);
}

TEST(PublishedTest, NamesTheBadLine) {
  const std::string good = std::string(kHeader) + "a,b,1,1,valid,9.5,3\n";
  for (const auto& [line, message] : std::vector<std::pair<std::string, std::string>>{
           {"a,b,1,1,valid,9.5", "line 3: 6 cells instead of 7"},
           {"a,b,one,1,correct,9.5,3", "level 'one'"},
           {"a,b,1,1,speed,9.5,3", "no metric is called 'speed'"},
           {"a,b,1,1,correct,101,3", "'101' is no value of correct"},
           {"a,b,1,1,correct,nan,3", "'nan' is no value of correct"},
           {"a,b,1,1,correct,,3", "'' is no value of correct"},
           {"a,b,1,1,valid,9.5,3", "an earlier line has the same cell"},
           {"a,\"b,1,1,valid,9.5,3", "a quote is not closed"},
           {"", "line 3: 1 cells"}}) {
    const auto published = LoadText(good + line + "\n" + "a,c,1,1,valid,9.5,3\n");
    ASSERT_FALSE(published.ok()) << line;
    EXPECT_THAT(std::string(published.status().message()), HasSubstr(message));
    EXPECT_THAT(std::string(published.status().message()), HasSubstr("published.csv, line 3"));
  }
  EXPECT_THAT(std::string(LoadText("table,row\n").status().message()), HasSubstr("must begin"));
  EXPECT_EQ(Published::Load("/nowhere.csv").status().code(), absl::StatusCode::kNotFound);
}

TEST(PublishedTest, FillsColumnsWithoutAVariant) {
  TableData table;
  table.name = "alpha";
  table.columns = {{1, 10, "correct", ""}, {1, 10, "correct", "unbiased"}, {2, 10, "correct", ""}};
  table.rows = {{{}, std::vector<Cell>(3)}, {{}, std::vector<Cell>(3)}};
  ASSERT_TRUE(Paper().Fill({"0.5", ""}, &table).ok());
  EXPECT_DOUBLE_EQ(table.rows[0].cells[0].published.value(), 0.75);
  EXPECT_EQ(table.rows[0].cells[1].published, std::nullopt);
  EXPECT_EQ(table.rows[0].cells[2].published, std::nullopt);
  EXPECT_EQ(table.rows[1].cells[0].published, std::nullopt);

  const absl::Status unknown = Paper().Fill({"0.7", ""}, &table);
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(unknown.message()),
              HasSubstr("no row '0.7'; it has: 0.0; 0.1 (alpha*); 0.5"));
  EXPECT_EQ(Paper().Fill({"0.5"}, &table).code(), absl::StatusCode::kInvalidArgument);
  table.rows[1].cells.pop_back();
  EXPECT_EQ(Paper().Fill({"0.5", ""}, &table).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tritonrl
