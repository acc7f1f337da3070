#include "eval/tables/render.h"

#include <cmath>

#include "eval/tables/layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tritonrl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Cell Ours(double value, double low, double high, const Stamp& stamp) {
  Cell cell;
  cell.ours = Interval{value, low, high};
  cell.stamp = stamp;
  return cell;
}

Cell Missing(const std::string& why) {
  Cell cell;
  cell.missing = why;
  return cell;
}

Stamp CpuStamp() {
  Stamp stamp;
  stamp.commit = "1a2b";
  stamp.config_hash = "3c4d";
  stamp.tasks_version = "mini";
  stamp.seeds = {0, 1};
  stamp.versions = {{"triton", "3.1"}, {"torch", "2.5"}};
  return stamp;
}

// Two blocks, one published row, values of two stamps, two missing values of one reason, and text
// that has to be escaped.
TableData SmallTable() {
  const Stamp cpu = CpuStamp();
  Stamp gpu = cpu;
  gpu.gpu = "NVIDIA L40S";
  gpu.seeds = {7};
  TableData table;
  table.name = "reward_shape";
  table.title = "Rewards";
  table.caption = "HRD & uniform.";
  table.label_headings = {"Type", "beta"};
  table.columns = {
      {1, 10, "correct", ""}, {1, 10, "mean_speedup", ""}, {2, 1, "correct", "unbiased"}};
  table.published_label = "published (8B, L40S)";
  table.notes = {"[low, high]: 95 % interval over tasks"};
  Cell correct = Ours(0.875, 0.8, 0.95, cpu);
  correct.published = 0.78;
  Cell speedup = Ours(1.5, 1.25, 1.75, cpu);
  speedup.modelled = true;
  Cell awaited = Missing("needs \"Qwen_3\"");
  awaited.published = 0.68;
  table.rows = {
      {{"HRD", "-"}, {correct, speedup, Ours(1, 1, 1, cpu)}},
      {{"Uniform|x", "0.5"}, {awaited, Missing("needs \"Qwen_3\""), Missing("no level 2")}},
      {{"[Both]", "<1"}, {Ours(0, 0, 0.064, cpu), Ours(2, 1.5, 2.5, gpu), Missing("no level 2")}},
  };
  return table;
}

TEST(RenderTest, TheSmallTableIsSound) { EXPECT_TRUE(CheckTable(SmallTable()).ok()); }

TEST(RenderTest, Markdown) {
  EXPECT_EQ(RenderMarkdown(SmallTable()),
            R"(# Rewards

HRD &amp; uniform.

## Level 1, k = 10

| Type       | beta  | correct (%)       | correct (%), published (8B, L40S) | mean speedup                | stamp  |
| ---------- | ----- | ----------------- | --------------------------------- | --------------------------- | ------ |
| HRD        | -     | 87.5 [80.0, 95.0] | 78.0                              | 1.50x [1.25, 1.75] modelled | S1     |
| Uniform\|x | 0.5   | missing (1)       | 68.0                              | missing (1)                 | -      |
| [Both]     | &lt;1 | 0.0 [0.0, 6.4] S1 | -                                 | 2.00x [1.50, 2.50] S2       | S1, S2 |

## Level 2, k = 1

| Type       | beta  | correct, unbiased (%) | stamp |
| ---------- | ----- | --------------------- | ----- |
| HRD        | -     | 100.0 [100.0, 100.0]  | S1    |
| Uniform\|x | 0.5   | missing (2)           | -     |
| [Both]     | &lt;1 | missing (2)           | -     |

- [low, high]: 95 % interval over tasks
- modelled: computed from counted bytes and operations by a roofline model, not measured.
- (1) missing: needs "Qwen_3"
- (2) missing: no level 2
- S1: commit 1a2b, configuration 3c4d, without a GPU, tasks mini, seeds 0 1, torch 2.5, triton 3.1
- S2: commit 1a2b, configuration 3c4d, GPU NVIDIA L40S, tasks mini, seed 7, torch 2.5, triton 3.1
)");
}

TEST(RenderTest, Latex) {
  EXPECT_EQ(RenderLatex(SmallTable()), R"(\begin{table*}[t]
\centering\small
\caption{Rewards. HRD \& uniform.}
\label{tab:reward_shape}
\begin{adjustbox}{max width=\textwidth}
\begin{tabular}{llrrrr}
\toprule
\multicolumn{6}{l}{Level 1, k = 10} \\
\midrule
Type & beta & correct (\%) & correct (\%), published (8B, L40S) & mean speedup & stamp \\
\midrule
HRD & - & 87.5 [80.0, 95.0] & 78.0 & 1.50x [1.25, 1.75] modelled & S1 \\
Uniform\textbar{}x & 0.5 & missing (1) & 68.0 & missing (1) & - \\
{}[Both] & \textless{}1 & 0.0 [0.0, 6.4] S1 & - & 2.00x [1.50, 2.50] S2 & S1, S2 \\
\bottomrule
\end{tabular}
\end{adjustbox}

\medskip
\begin{adjustbox}{max width=\textwidth}
\begin{tabular}{llrr}
\toprule
\multicolumn{4}{l}{Level 2, k = 1} \\
\midrule
Type & beta & correct, unbiased (\%) & stamp \\
\midrule
HRD & - & 100.0 [100.0, 100.0] & S1 \\
Uniform\textbar{}x & 0.5 & missing (2) & - \\
{}[Both] & \textless{}1 & missing (2) & - \\
\bottomrule
\end{tabular}
\end{adjustbox}

\medskip
\par\footnotesize {}[low, high]: 95 \% interval over tasks
\par\footnotesize modelled: computed from counted bytes and operations by a roofline model, not measured.
\par\footnotesize (1) missing: needs "Qwen\_3"
\par\footnotesize (2) missing: no level 2
\par\footnotesize S1: commit 1a2b, configuration 3c4d, without a GPU, tasks mini, seeds 0 1, torch 2.5, triton 3.1
\par\footnotesize S2: commit 1a2b, configuration 3c4d, GPU NVIDIA L40S, tasks mini, seed 7, torch 2.5, triton 3.1
\end{table*}
)");
}

TEST(RenderTest, Csv) {
  EXPECT_EQ(
      RenderCsv(SmallTable()),
      R"(table,row,level,k,metric,variant,value,low,high,published,modelled,missing,commit,configuration,gpu,tasks_version,tasks_digest,seeds,versions
reward_shape,"HRD, -",1,10,correct,,87.5000,80.0000,95.0000,78.0,no,,1a2b,3c4d,,mini,,0 1,torch=2.5 triton=3.1
reward_shape,"HRD, -",1,10,mean_speedup,,1.5000,1.2500,1.7500,,yes,,1a2b,3c4d,,mini,,0 1,torch=2.5 triton=3.1
reward_shape,"HRD, -",2,1,correct,unbiased,100.0000,100.0000,100.0000,,no,,1a2b,3c4d,,mini,,0 1,torch=2.5 triton=3.1
reward_shape,"Uniform|x, 0.5",1,10,correct,,,,,68.0,,"needs ""Qwen_3""",,,,,,,
reward_shape,"Uniform|x, 0.5",1,10,mean_speedup,,,,,,,"needs ""Qwen_3""",,,,,,,
reward_shape,"Uniform|x, 0.5",2,1,correct,unbiased,,,,,,no level 2,,,,,,,
reward_shape,"[Both], <1",1,10,correct,,0.0000,0.0000,6.4000,,no,,1a2b,3c4d,,mini,,0 1,torch=2.5 triton=3.1
reward_shape,"[Both], <1",1,10,mean_speedup,,2.0000,1.5000,2.5000,,no,,1a2b,3c4d,NVIDIA L40S,mini,,7,torch=2.5 triton=3.1
reward_shape,"[Both], <1",2,1,correct,unbiased,,,,,,no level 2,,,,,,,
)");
}

TEST(RenderTest, ATableWithoutRowsOrCaption) {
  TableData table = SmallTable();
  table.rows.clear();
  table.notes.clear();
  table.caption.clear();
  table.columns.resize(1);
  EXPECT_EQ(RenderMarkdown(table), R"(# Rewards

## Level 1, k = 10

| Type | beta | correct (%) | stamp |
| ---- | ---- | ----------- | ----- |
)");
  EXPECT_THAT(RenderLatex(table), HasSubstr("\\caption{Rewards}\n"));
}

TEST(RenderTest, AValueWithoutAnInterval) {
  TableData table = SmallTable();
  table.rows[0].cells[0].ours = Interval{0.875, -INFINITY, INFINITY};
  EXPECT_THAT(RenderMarkdown(table), HasSubstr("| 87.5 [no interval] | 78.0 "));
  EXPECT_THAT(RenderCsv(table), HasSubstr("correct,,87.5000,,,78.0,no,"));
}

TEST(LayoutTest, AStampNamesWhatItKnows) {
  Stamp stamp = CpuStamp();
  stamp.tasks_digest = "5e6f";
  EXPECT_EQ(StampText(stamp),
            "commit 1a2b, configuration 3c4d, without a GPU, tasks mini, digest of tasks 5e6f, "
            "seeds 0 1, torch 2.5, triton 3.1");
}

TEST(LayoutTest, ColumnsOfOneBlockNeedNotBeNeighbours) {
  TableData table = SmallTable();
  table.columns = {{1, 10, "valid", ""}, {1, 5, "valid", ""}, {1, 10, "correct", ""}};
  for (TableRow& row : table.rows) row.cells.assign(3, Missing("later"));
  const TableLayout layout = LayOut(table);
  ASSERT_EQ(layout.blocks.size(), 2);
  EXPECT_THAT(layout.blocks[0].header,
              ElementsAre("Type", "beta", "valid (%)", "correct (%)", "stamp"));
  EXPECT_EQ(layout.blocks[1].heading, "Level 1, k = 5");
  EXPECT_THAT(layout.blocks[1].rows[0], ElementsAre("HRD", "-", "missing (1)", "-"));
}

}  // namespace
}  // namespace tritonrl
