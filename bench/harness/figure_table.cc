#include "bench/harness/figure_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr absl::string_view kCsvHeader =
    "id,subject,setting,metric,value,unit,peer,peer_value,bound,machine,commit,date,command,page";

// At least four significant digits, and never fewer than all digits before the point.
std::string Number(double value) {
  return std::abs(value) >= 1000 ? absl::StrFormat("%.0f", value) : absl::StrFormat("%.4g", value);
}

std::string Optional(const std::optional<double>& value) { return value ? Number(*value) : ""; }

std::string Spread(const std::vector<double>& rounds) {
  if (rounds.size() < 2) return "";
  const auto [least, most] = std::minmax_element(rounds.begin(), rounds.end());
  return absl::StrCat(Number(*least), " to ", Number(*most));
}

// Lays out a table with aligned columns. A column that is empty below its head is omitted.
std::string Aligned(const std::vector<std::vector<std::string>>& lines) {
  std::vector<size_t> widths(lines[0].size());
  std::vector<bool> used(lines[0].size());
  for (size_t row = 0; row < lines.size(); ++row) {
    for (size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], lines[row][i].size());
      if (row > 0 && !lines[row][i].empty()) used[i] = true;
    }
  }
  std::string table;
  for (const std::vector<std::string>& line : lines) {
    std::string text;
    for (size_t i = 0; i < widths.size(); ++i) {
      if (!used[i]) continue;
      const int width = static_cast<int>(widths[i]);
      if (i == 2 || i == 4 || i == 5) {  // numbers
        absl::StrAppendFormat(&text, "%*s  ", width, line[i]);
      } else {
        absl::StrAppendFormat(&text, "%-*s  ", width, line[i]);
      }
    }
    absl::StrAppend(&table, absl::StripTrailingAsciiWhitespace(text), "\n");
  }
  return table;
}

std::string CsvCell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace

Figure Count(std::string metric, int64_t number, std::string unit) {
  return {std::move(metric), static_cast<double>(number), std::move(unit)};
}

void FigureTable::Add(const std::string& subject, const std::string& setting,
                      const std::string& peer, std::vector<Figure> figures) {
  for (Figure& figure : figures) rows_.push_back({subject, setting, peer, std::move(figure)});
}

std::string FigureTable::TakeTable() {
  std::string tables;
  while (printed_ < rows_.size()) {
    std::vector<std::vector<std::string>> lines = {
        {"setting", "metric", "value", "unit", "peer", "bound", "spread"}};
    const std::string title = rows_[printed_].subject;
    std::string last, peers;
    for (; printed_ < rows_.size() && rows_[printed_].subject == title; ++printed_) {
      const auto& [subject, setting, peer_name, f] = rows_[printed_];
      lines.push_back({setting == last ? "" : setting, f.metric, Number(f.value), f.unit,
                       Optional(f.peer), Optional(f.bound), Spread(f.rounds)});
      last = setting;
      if (f.peer && !absl::StrContains(peers, peer_name)) {
        absl::StrAppend(&peers, peers.empty() ? "peer: " : "; ", peer_name);
      }
    }
    absl::StrAppend(&tables, title, "\n", Aligned(lines), peers, peers.empty() ? "" : "\n");
  }
  return tables;
}

std::string FigureTable::CsvLines(const std::string& prefix, int first, const RunInfo& info) const {
  std::string lines;
  for (const auto& [subject, setting, peer_name, f] : rows_) {
    const std::vector<std::string> cells = {
        absl::StrFormat("%s-%03d", prefix, first++),
        subject,
        setting,
        f.metric,
        Number(f.value),
        f.unit,
        f.peer ? peer_name : "",
        Optional(f.peer),
        f.bound ? absl::StrCat(Number(*f.bound), f.unit.empty() ? "" : " ", f.unit) : "",
        info.machine,
        info.commit,
        info.date,
        info.command,
        "no"};
    absl::StrAppend(&lines,
                    absl::StrJoin(cells, ",",
                                  [](std::string* out, const std::string& cell) {
                                    out->append(CsvCell(cell));
                                  }),
                    "\n");
  }
  return lines;
}

absl::Status FigureTable::AppendCsv(const std::string& path, const RunInfo& info,
                                    bool write) const {
  std::string text;
  if (FileExists(path)) {
    ASSIGN_OR_RETURN(text, ReadFile(path));
  }
  if (text.empty()) text = absl::StrCat(kCsvHeader, "\n");
  const std::string prefix(absl::StripSuffix(BaseName(path), ".csv"));
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (lines.empty() || lines.front() != kCsvHeader) {
    return absl::InvalidArgumentError(
        absl::StrCat("--csv=", path, " must begin with the line ", kCsvHeader));
  }
  int last = 0;
  for (absl::string_view line : lines) {
    int number = 0;
    if (absl::ConsumePrefix(&line, prefix + "-") &&
        absl::SimpleAtoi(line.substr(0, line.find(',')), &number)) {
      last = std::max(last, number);
    }
  }
  if (!write) return absl::OkStatus();
  if (!absl::EndsWith(text, "\n")) text += "\n";
  return WriteFileAtomic(path, text + CsvLines(prefix, last + 1, info));
}

}  // namespace tritonrl
