#include "eval/tables/table.h"

#include <cmath>
#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;

TableData GoodTable() {
  TableData table;
  table.name = "alpha";
  table.label_headings = {"alpha"};
  table.columns = {{1, 10, "correct", ""}, {1, 10, "fast_1", ""}};
  Cell correct;
  correct.ours = Interval{0.5, 0.4, 0.6};
  correct.stamp.commit = "1a2b";
  correct.stamp.config_hash = "3c4d";
  correct.stamp.seeds = {0};
  Cell fast = correct;
  fast.modelled = true;
  Cell missing;
  missing.missing = "needs a GPU";
  table.rows = {{{"0.1"}, {correct, fast}}, {{"0.5"}, {missing, missing}}};
  return table;
}

TEST(CheckTableTest, AcceptsValuesAndReasons) { EXPECT_TRUE(CheckTable(GoodTable()).ok()); }

TEST(CheckTableTest, AModelledZeroNeedsNoMark) {
  TableData table = GoodTable();
  table.rows[0].cells[1].modelled = false;
  table.rows[0].cells[1].ours = Interval();
  EXPECT_TRUE(CheckTable(table).ok());
}

TEST(CheckTableTest, AValueMayHaveNoInterval) {
  TableData table = GoodTable();
  table.rows[0].cells[0].ours = Interval{0.5, -INFINITY, INFINITY};
  EXPECT_TRUE(CheckTable(table).ok());
  table.rows[0].cells[0].ours = Interval{1.5, -INFINITY, INFINITY};
  EXPECT_FALSE(CheckTable(table).ok());
}

struct BadTable {
  std::function<void(TableData*)> change;
  std::string message;
};

class BadTableTest : public ::testing::TestWithParam<BadTable> {};

TEST_P(BadTableTest, IsRefusedByName) {
  TableData table = GoodTable();
  GetParam().change(&table);
  const absl::Status status = CheckTable(table);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("table alpha"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

Cell& First(TableData* table) { return table->rows[0].cells[0]; }
Cell& Fast(TableData* table) { return table->rows[0].cells[1]; }

INSTANTIATE_TEST_SUITE_P(
    All, BadTableTest,
    ::testing::Values(
        BadTable{[](TableData* t) { t->columns[0].metric = "speed"; }, "metric is called 'speed'"},
        BadTable{[](TableData* t) { t->columns[0].k = 0; }, "correct has k = 0"},
        BadTable{[](TableData* t) { t->columns[1] = t->columns[0]; }, "two columns are correct"},
        BadTable{[](TableData* t) { t->rows[0].labels.clear(); }, "has 0 labels and 2 cells"},
        BadTable{[](TableData* t) { t->rows[1].cells.pop_back(); }, "has 1 labels and 1 cells"},
        BadTable{[](TableData* t) { First(t).missing = "x"; },
                 "row '0.1', correct at level 1, k = 10"},
        BadTable{[](TableData* t) { First(t).ours.reset(); }, "no value, and no reason"},
        BadTable{[](TableData* t) { First(t).ours->value = std::nan(""); }, "value nan"},
        BadTable{[](TableData* t) { First(t).ours->low = 0.55; }, "value 0.5 with interval 0.55"},
        BadTable{[](TableData* t) { First(t).ours->high = 1.5; }, "interval 0.4 to 1.5"},
        BadTable{[](TableData* t) { First(t).published = 78.0; }, "published value 78"},
        BadTable{[](TableData* t) { First(t).stamp.seeds.clear(); }, "the stamp lacks"},
        BadTable{[](TableData* t) { First(t).modelled = true; }, "it depends on no time"},
        BadTable{[](TableData* t) { Fast(t).stamp.gpu = "L40S"; }, "names the GPU L40S"},
        BadTable{[](TableData* t) { Fast(t).modelled = false; }, "not marked as modelled"}));

TEST(MetricTextTest, KnowsTheNamesOfThePublishedFile) {
  EXPECT_FALSE(FindMetricText("mean_speedup")->share);
  EXPECT_TRUE(FindMetricText("fast_2")->timed);
  EXPECT_FALSE(FindMetricText("open_correct")->timed);
  EXPECT_EQ(FindMetricText(""), nullptr);
}

}  // namespace
}  // namespace tritonrl
