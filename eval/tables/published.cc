#include "eval/tables/published.h"

#include <climits>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr char kHeader[] = "table,row,level,k,metric,value,tex_line";
constexpr size_t kColumns = 7;

// The cells of one line of CSV (RFC 4180); nullopt if a quote is not closed. No cell of the file
// has a line break.
std::optional<std::vector<std::string>> SplitCsvLine(absl::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      // Two quotes within quotes are one quote of the text.
      if (quoted && i + 1 < line.size() && line[i + 1] == '"') {
        cells.back().push_back(line[++i]);
      } else {
        quoted = !quoted;
      }
    } else if (line[i] == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back().push_back(line[i]);
    }
  }
  if (quoted) return std::nullopt;
  return cells;
}

}  // namespace

absl::Status Published::AddLine(const std::vector<std::string>& cells) {
  if (cells.size() != kColumns) {
    return absl::InvalidArgumentError(
        absl::StrCat(cells.size(), " cells instead of ", kColumns, ": ", kHeader));
  }
  int level = 0;
  int k = 0;
  if (!absl::SimpleAtoi(cells[2], &level) || !absl::SimpleAtoi(cells[3], &k)) {
    return absl::InvalidArgumentError(
        absl::StrCat("level '", cells[2], "' or k '", cells[3], "' is no whole number"));
  }
  const MetricText* metric = FindMetricText(cells[4]);
  if (metric == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("no metric is called '", cells[4], "'"));
  }
  double value = 0.0;
  if (!absl::SimpleAtod(cells[5], &value) || !std::isfinite(value) || value < 0 ||
      (metric->share && value > 100)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", cells[5], "' is no value of ", metric->name));
  }
  if (!values_
           .emplace(Key(cells[0], cells[1], level, k, cells[4]),
                    metric->share ? value / 100 : value)
           .second) {
    return absl::InvalidArgumentError("an earlier line has the same cell");
  }
  return absl::OkStatus();
}

absl::StatusOr<Published> Published::Load(const std::string& csv) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(csv));
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (lines[0] != kHeader) {
    return absl::InvalidArgumentError(absl::StrCat(csv, " must begin with the line ", kHeader));
  }
  Published published;
  for (size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty() && i + 1 == lines.size()) break;  // behind the last line break
    const auto cells = SplitCsvLine(lines[i]);
    RETURN_IF_ERROR(AddContext(cells.has_value()
                                   ? published.AddLine(*cells)
                                   : absl::InvalidArgumentError("a quote is not closed"),
                               absl::StrCat(csv, ", line ", i + 1)));
  }
  return published;
}

std::optional<double> Published::Find(const std::string& table, const std::string& row, int level,
                                      const std::string& metric, int k) const {
  const auto found = values_.find(Key(table, row, level, k, metric));
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::string> Published::Rows(const std::string& table) const {
  std::vector<std::string> rows;
  for (auto it = values_.lower_bound(Key(table, "", INT_MIN, INT_MIN, ""));
       it != values_.end() && std::get<0>(it->first) == table; ++it) {
    if (rows.empty() || rows.back() != std::get<1>(it->first)) {
      rows.push_back(std::get<1>(it->first));
    }
  }
  return rows;
}

absl::Status Published::Fill(const std::vector<std::string>& rows, TableData* table) const {
  if (rows.size() != table->rows.size()) {
    return absl::InvalidArgumentError(absl::StrCat("table ", table->name, " has ",
                                                   table->rows.size(), " rows, and ", rows.size(),
                                                   " published labels"));
  }
  const std::vector<std::string> known = Rows(table->name);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<Cell>& cells = table->rows[i].cells;
    if (cells.size() != table->columns.size()) {
      return absl::InvalidArgumentError(absl::StrCat("table ", table->name, ", row ", i, " has ",
                                                     cells.size(), " cells for ",
                                                     table->columns.size(), " columns"));
    }
    if (rows[i].empty()) continue;
    if (!absl::c_binary_search(known, rows[i])) {
      return absl::NotFoundError(absl::StrCat("the published table ", table->name, " has no row '",
                                              rows[i], "'; it has: ", absl::StrJoin(known, "; ")));
    }
    for (size_t j = 0; j < cells.size(); ++j) {
      const Column& c = table->columns[j];
      if (c.variant.empty()) {
        cells[j].published = Find(table->name, rows[i], c.level, c.metric, c.k);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace tritonrl
