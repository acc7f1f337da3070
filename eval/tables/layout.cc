#include "eval/tables/layout.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace tritonrl {
namespace {

constexpr char kModelledNote[] =
    "modelled: computed from counted bytes and operations by a roofline model, not measured.";

// Numbers things in the order of their first use, from 1.
template <typename T>
class Numbering {
 public:
  int Of(const T& thing) {
    const auto found = std::find(things_.begin(), things_.end(), thing);
    if (found != things_.end()) return found - things_.begin() + 1;
    things_.push_back(thing);
    return things_.size();
  }
  const std::vector<T>& things() const { return things_; }

 private:
  std::vector<T> things_;
};

std::string ValueText(double value, const MetricText& metric) {
  return metric.share ? absl::StrFormat("%.1f", 100 * value) : absl::StrFormat("%.2fx", value);
}

std::string IntervalText(const Interval& v, const MetricText& metric) {
  if (!v.bounded()) return "[no interval]";
  return metric.share ? absl::StrFormat("[%.1f, %.1f]", 100 * v.low, 100 * v.high)
                      : absl::StrFormat("[%.2f, %.2f]", v.low, v.high);
}

std::string BlockHeading(const Column& column) {
  const std::string level = column.level == 0 ? "All levels" : absl::StrCat("Level ", column.level);
  return absl::StrCat(level, ", k = ", column.k);
}

class Builder {
 public:
  explicit Builder(const TableData& table) : table_(table) {}

  TableLayout Build() {
    std::vector<std::pair<int, int>> done;
    for (const Column& column : table_.columns) {
      const std::pair<int, int> block(column.level, column.k);
      if (std::find(done.begin(), done.end(), block) != done.end()) continue;
      done.push_back(block);
      layout_.blocks.push_back(BuildBlock(column));
    }
    AddNotes();
    return std::move(layout_);
  }

 private:
  bool HasPublished(size_t column) const {
    return std::any_of(table_.rows.begin(), table_.rows.end(), [column](const TableRow& row) {
      return row.cells[column].published.has_value();
    });
  }

  // The block of all columns with the level and k of `first`.
  TableBlock BuildBlock(const Column& first) {
    TableBlock block;
    block.heading = BlockHeading(first);
    block.labels = table_.label_headings.size();
    block.header = table_.label_headings;
    std::vector<size_t> columns;
    for (size_t i = 0; i < table_.columns.size(); ++i) {
      const Column& column = table_.columns[i];
      if (column.level != first.level || column.k != first.k) continue;
      columns.push_back(i);
      const MetricText& metric = *FindMetricText(column.metric);
      const char* unit = metric.share ? " (%)" : "";
      block.header.push_back(
          absl::StrCat(metric.title, column.variant.empty() ? "" : ", ", column.variant, unit));
      if (HasPublished(i)) {
        block.header.push_back(absl::StrCat(metric.title, unit, ", ", table_.published_label));
      }
    }
    block.header.push_back("stamp");
    for (const TableRow& row : table_.rows) block.rows.push_back(RowTexts(row, columns));
    return block;
  }

  std::vector<std::string> RowTexts(const TableRow& row, const std::vector<size_t>& columns) {
    std::set<int> stamps;
    for (size_t i : columns) {
      if (row.cells[i].ours.has_value()) stamps.insert(stamps_.Of(row.cells[i].stamp));
    }
    std::vector<std::string> texts = row.labels;
    for (size_t i : columns) {
      const Cell& cell = row.cells[i];
      const MetricText& metric = *FindMetricText(table_.columns[i].metric);
      texts.push_back(OursText(cell, metric, /*with_stamp=*/stamps.size() > 1));
      if (HasPublished(i)) {
        texts.push_back(cell.published.has_value() ? ValueText(*cell.published, metric) : "-");
      }
    }
    texts.push_back(stamps.empty() ? "-" : absl::StrCat("S", absl::StrJoin(stamps, ", S")));
    return texts;
  }

  std::string OursText(const Cell& cell, const MetricText& metric, bool with_stamp) {
    if (!cell.ours.has_value()) return absl::StrCat("missing (", missing_.Of(cell.missing), ")");
    std::string text =
        absl::StrCat(ValueText(cell.ours->value, metric), " ", IntervalText(*cell.ours, metric));
    if (cell.modelled) {
      absl::StrAppend(&text, " modelled");
      modelled_ = true;
    }
    if (with_stamp) absl::StrAppend(&text, " S", stamps_.Of(cell.stamp));
    return text;
  }

  void AddNotes() {
    layout_.notes = table_.notes;
    if (modelled_) layout_.notes.push_back(kModelledNote);
    for (size_t i = 0; i < missing_.things().size(); ++i) {
      layout_.notes.push_back(absl::StrCat("(", i + 1, ") missing: ", missing_.things()[i]));
    }
    for (size_t i = 0; i < stamps_.things().size(); ++i) {
      layout_.notes.push_back(absl::StrCat("S", i + 1, ": ", StampText(stamps_.things()[i])));
    }
  }

  const TableData& table_;
  TableLayout layout_;
  Numbering<std::string> missing_;
  Numbering<Stamp> stamps_;
  bool modelled_ = false;
};

}  // namespace

TableLayout LayOut(const TableData& table) { return Builder(table).Build(); }

std::string StampText(const Stamp& stamp) {
  std::vector<std::string> parts = {
      absl::StrCat("commit ", stamp.commit), absl::StrCat("configuration ", stamp.config_hash),
      stamp.gpu.empty() ? "without a GPU" : absl::StrCat("GPU ", stamp.gpu)};
  if (!stamp.tasks_version.empty()) parts.push_back(absl::StrCat("tasks ", stamp.tasks_version));
  if (!stamp.tasks_digest.empty()) {
    parts.push_back(absl::StrCat("digest of tasks ", stamp.tasks_digest));
  }
  parts.push_back(
      absl::StrCat(stamp.seeds.size() == 1 ? "seed " : "seeds ", absl::StrJoin(stamp.seeds, " ")));
  for (const auto& [name, version] : stamp.versions) {
    parts.push_back(absl::StrCat(name, " ", version));
  }
  return absl::StrJoin(parts, ", ");
}

}  // namespace tritonrl
