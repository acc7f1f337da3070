#include "eval/tables/table.h"

#include <cmath>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr MetricText kMetrics[] = {
    {"valid", "valid"},
    {"compiled", "compiled"},
    {"correct", "correct"},
    {"fast_1", "fast_1", /*share=*/true, /*timed=*/true},
    {"fast_2", "fast_2", /*share=*/true, /*timed=*/true},
    {"mean_speedup", "mean speedup", /*share=*/false, /*timed=*/true},
    {"open_compiled", "compiled w/o robust verifier"},
    {"open_correct", "correct w/o robust verifier"},
};

bool InRange(double x, bool share) { return std::isfinite(x) && (!share || (x >= 0 && x <= 1)); }

absl::Status CheckColumns(const TableData& table) {
  std::set<std::tuple<int, int, std::string, std::string>> seen;
  for (const Column& c : table.columns) {
    if (FindMetricText(c.metric) == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("no metric is called '", c.metric, "'"));
    }
    if (c.k < 1) {
      return absl::InvalidArgumentError(absl::StrCat("column ", c.metric, " has k = ", c.k));
    }
    if (!seen.insert({c.level, c.k, c.metric, c.variant}).second) {
      return absl::InvalidArgumentError(absl::StrCat("two columns are ", c.metric, " at level ",
                                                     c.level, ", k = ", c.k, " ", c.variant));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNumbers(const Cell& cell, bool share) {
  if (cell.published.has_value() && !InRange(*cell.published, share)) {
    return absl::InvalidArgumentError(absl::StrCat("published value ", *cell.published));
  }
  if (cell.ours.has_value() && !IsSound(*cell.ours, share)) {
    return absl::InvalidArgumentError(absl::StrCat("value ", cell.ours->value, " with interval ",
                                                   cell.ours->low, " to ", cell.ours->high));
  }
  return absl::OkStatus();
}

// A wrong mark would pass a modelled time off as a measured one.
absl::Status CheckMark(const Cell& cell, const MetricText& metric) {
  const bool measured = !cell.stamp.gpu.empty();
  if (cell.modelled && !metric.timed) {
    return absl::InvalidArgumentError("marked as modelled, but it depends on no time");
  }
  if (cell.modelled && measured) {
    return absl::InvalidArgumentError(
        absl::StrCat("marked as modelled, but its stamp names the GPU ", cell.stamp.gpu));
  }
  if (!cell.modelled && metric.timed && !measured && cell.ours->value > 0) {
    return absl::InvalidArgumentError("not marked as modelled, but its stamp names no GPU");
  }
  return absl::OkStatus();
}

absl::Status CheckCell(const Cell& cell, const MetricText& metric) {
  if (cell.ours.has_value() != cell.missing.empty()) {
    return absl::InvalidArgumentError(cell.ours.has_value()
                                          ? "a value, and a reason why it is missing"
                                          : "no value, and no reason why it is missing");
  }
  RETURN_IF_ERROR(CheckNumbers(cell, metric.share));
  if (!cell.ours.has_value()) return absl::OkStatus();
  if (cell.stamp.commit.empty() || cell.stamp.config_hash.empty() || cell.stamp.seeds.empty()) {
    return absl::InvalidArgumentError("the stamp lacks commit, configuration or seeds");
  }
  return CheckMark(cell, metric);
}

}  // namespace

bool IsSound(const Interval& v, bool share) {
  if (!InRange(v.value, share) || !(v.low <= v.value) || !(v.value <= v.high)) return false;
  return !v.bounded() || (InRange(v.low, share) && InRange(v.high, share));
}

const MetricText* FindMetricText(absl::string_view name) {
  for (const MetricText& metric : kMetrics) {
    if (metric.name == name) return &metric;
  }
  return nullptr;
}

absl::Status CheckTable(const TableData& table) {
  RETURN_IF_ERROR(AddContext(CheckColumns(table), absl::StrCat("table ", table.name)));
  for (const TableRow& row : table.rows) {
    const std::string where =
        absl::StrCat("table ", table.name, ", row '", absl::StrJoin(row.labels, ", "), "'");
    if (row.labels.size() != table.label_headings.size() ||
        row.cells.size() != table.columns.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, " has ", row.labels.size(), " labels and ", row.cells.size(), " cells; the table ",
          table.label_headings.size(), " and ", table.columns.size()));
    }
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const Column& c = table.columns[i];
      RETURN_IF_ERROR(
          AddContext(CheckCell(row.cells[i], *FindMetricText(c.metric)),
                     absl::StrCat(where, ", ", c.metric, " at level ", c.level, ", k = ", c.k)));
    }
  }
  return absl::OkStatus();
}

}  // namespace tritonrl
