// A table of results: values of this repository with their intervals, beside the published ones.
//
// All values are in the metric's own unit: shares in [0, 1], speedups as ratios. The renderers
// (render.h) print shares in percent.
#ifndef TRITONRL_EVAL_TABLES_TABLE_H_
#define TRITONRL_EVAL_TABLES_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "eval/metrics/bootstrap.h"

namespace tritonrl {

// Whether the value is finite, in its interval, and, with `share`, both are in [0, 1].
bool IsSound(const Interval& value, bool share);

// Where a value comes from: enough to make it again.
struct Stamp {
  std::string commit;
  std::string config_hash;
  std::string gpu;  // that executed the candidates; empty: none, times are modelled
  std::string tasks_version;
  std::string tasks_digest;
  std::map<std::string, std::string> versions;  // of libraries and tools
  std::vector<uint64_t> seeds;

  bool operator==(const Stamp&) const = default;
};

struct Cell {
  std::optional<Interval> ours;
  std::optional<double> published;
  std::string missing;    // why there is no `ours`, e.g. "needs the checkpoint Qwen3-14B"
  bool modelled = false;  // `ours` depends on modelled times
  Stamp stamp;            // of `ours`
};

// What a metric is called in tables, and how its values are printed.
struct MetricText {
  absl::string_view name;   // as in eval/published/paper.csv
  absl::string_view title;  // for people
  bool share = true;        // a share in [0, 1]; else a ratio
  bool timed = false;       // depends on times
};

// The metric of that name, or nullptr. The names are valid, compiled, correct, fast_1, fast_2,
// mean_speedup, open_compiled and open_correct (open: without functionality checks).
const MetricText* FindMetricText(absl::string_view name);

struct Column {
  int level = 0;  // 0: of all levels
  int k = 1;
  std::string metric;   // a name of FindMetricText
  std::string variant;  // what differs from the paper's estimate, e.g. "unbiased"; mostly empty
};

struct TableRow {
  std::vector<std::string> labels;  // one for each of TableData::label_headings
  std::vector<Cell> cells;          // one for each of TableData::columns
};

struct TableData {
  std::string name;  // "reward_shape"; a table's name in paper.csv if it has published values
  std::string title;
  std::string caption;  // may be empty
  std::vector<std::string> label_headings;
  std::vector<Column> columns;
  std::vector<TableRow> rows;
  std::string published_label;     // whose the published values are: "published (8B, L40S)"
  std::vector<std::string> notes;  // below the table; says what the intervals and N are
};

// InvalidArgument names the row and the column, if
//  - the numbers of labels or cells differ from those of headings or columns,
//  - a metric is unknown, a column occurs twice, or k < 1,
//  - a cell has neither a value nor a reason why it is missing, or has both,
//  - a value is not sound (IsSound), or a published share is outside of [0, 1],
//  - a value has no commit, configuration or seed in its stamp,
//  - a value is marked as modelled though its metric depends on no time or its stamp names a GPU,
//  - a value above 0 depends on times, has no GPU, and is not marked as modelled.
absl::Status CheckTable(const TableData& table);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_TABLES_TABLE_H_
