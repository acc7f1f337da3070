#include "eval/run/estimates.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "eval/markdown.h"

namespace tritonrl {
namespace {

struct MetricName {
  Metric metric;
  const char* title;
  const char* name;  // in JSON
  bool share;
  bool timed;
};

constexpr MetricName kNames[] = {
    {Metric::kValid, "valid", "valid", true, false},
    {Metric::kCompiled, "compiled", "compiled", true, false},
    {Metric::kCorrect, "correct", "correct", true, false},
    {Metric::kFast1, "fast_1", "fast_1", true, true},
    {Metric::kFast2, "fast_2", "fast_2", true, true},
    {Metric::kMeanSpeedup, "mean speedup", "mean_speedup", false, true},
    {Metric::kOpenCompiled, "compiled, unchecked", "open_compiled", true, false},
    {Metric::kOpenCorrect, "correct, unchecked", "open_correct", true, false},
};

bool IsOpen(Metric metric) {
  return metric == Metric::kOpenCompiled || metric == Metric::kOpenCorrect;
}

absl::StatusOr<EstimateRow> RowOf(absl::Span<const ScoredSample> samples, int level, int k,
                                  Estimator estimator, const BootstrapOptions& options) {
  EstimateRow row;
  row.level = level;
  row.k = k;
  row.estimator = estimator;
  const bool open = std::any_of(samples.begin(), samples.end(),
                                [](const ScoredSample& s) { return s.open.has_value(); });
  std::vector<Series> series;
  std::vector<Metric> metrics;
  for (const MetricName& name : kNames) {
    if (IsOpen(name.metric) && !open) continue;
    metrics.push_back(name.metric);
    ASSIGN_OR_RETURN(series.emplace_back(),
                     PerTask(samples, name.metric, estimator, k, Shapes::kApart));
  }
  ASSIGN_OR_RETURN(const std::vector<Interval> means, BootstrapMeans(series, options));
  for (size_t i = 0; i < means.size(); ++i) row.values[metrics[i]] = means[i];
  row.tasks = static_cast<int>(series[0].tasks.size());
  row.lost = series[0].lost;
  row.short_tasks = series[0].short_tasks;
  return row;
}

std::string Cell(const Interval& interval, bool share) {
  const double unit = share ? 100 : 1;
  const std::string value =
      absl::StrFormat("%.*f%s", share ? 1 : 2, unit * interval.value, share ? "" : "x");
  if (!interval.bounded()) return absl::StrCat(value, " (no interval)");
  return absl::StrFormat("%s (%.*f, %.*f)", value, share ? 1 : 2, unit * interval.low,
                         share ? 1 : 2, unit * interval.high);
}

std::string Label(const EstimateRow& row) {
  const std::string level = row.level > 0 ? absl::StrCat("level ", row.level, ": ") : "";
  if (row.estimator == Estimator::kUnbiased) return absl::StrCat(level, "pass@", row.k);
  return absl::StrCat(level,
                      row.k == 1 ? "first sample" : absl::StrCat("max over the first ", row.k));
}

}  // namespace

absl::StatusOr<std::vector<EstimateRow>> Estimate(absl::Span<const ScoredSample> samples,
                                                  int samples_per_task,
                                                  const BootstrapOptions& options) {
  std::set<int> levels;
  for (const ScoredSample& sample : samples) levels.insert(sample.level);
  std::vector<int> shown = {0};
  if (levels.size() > 1) shown.insert(shown.end(), levels.begin(), levels.end());
  std::set<int> ks = {1, samples_per_task};
  for (const int k : {5, 10}) {
    if (k <= samples_per_task) ks.insert(k);
  }
  std::vector<EstimateRow> rows;
  for (const int level : shown) {
    std::vector<ScoredSample> of_level;
    std::copy_if(samples.begin(), samples.end(), std::back_inserter(of_level),
                 [&](const ScoredSample& s) { return level == 0 || s.level == level; });
    for (const Estimator estimator : {Estimator::kMaxOverFirst, Estimator::kUnbiased}) {
      for (const int k : ks) {
        // Of as many samples as there are both are the same.
        if (estimator == Estimator::kUnbiased && k == samples_per_task) continue;
        ASSIGN_OR_RETURN(rows.emplace_back(), RowOf(of_level, level, k, estimator, options));
      }
    }
  }
  return rows;
}

std::string EstimatesTable(absl::Span<const EstimateRow> rows, bool modelled) {
  if (rows.empty()) return "";
  std::vector<std::string> header = {absl::StrCat("% of ", rows[0].tasks, " tasks")};
  for (const MetricName& name : kNames) {
    if (rows[0].values.count(name.metric) == 0) continue;
    header.push_back(absl::StrCat(name.title, name.timed && modelled ? " (modelled)" : ""));
  }
  std::vector<std::vector<std::string>> cells;
  for (const EstimateRow& row : rows) {
    std::vector<std::string> line = {Label(row)};
    for (const MetricName& name : kNames) {
      const auto value = row.values.find(name.metric);
      if (value != row.values.end()) line.push_back(Cell(value->second, name.share));
    }
    cells.push_back(std::move(line));
  }
  std::string text = MarkdownTable(header, cells);
  absl::StrAppend(&text, "In brackets: 95 % intervals over tasks (bootstrap).\n");
  if (rows[0].lost > 0) {
    absl::StrAppend(&text, rows[0].lost, " samples have no verdict and are left out; ",
                    rows[0].short_tasks, " tasks have fewer samples for that.\n");
  }
  return text;
}

std::string EstimatesJson(absl::Span<const EstimateRow> rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const EstimateRow& row : rows) {
    nlohmann::ordered_json object = {
        {"level", row.level},
        {"k", row.k},
        {"estimator", row.estimator == Estimator::kUnbiased ? "unbiased" : "max_over_first"},
        {"tasks", row.tasks},
        {"lost", row.lost},
        {"short_tasks", row.short_tasks}};
    for (const MetricName& name : kNames) {
      const auto value = row.values.find(name.metric);
      if (value == row.values.end()) continue;
      object[name.name] = {value->second.value, value->second.low, value->second.high};
    }
    list.push_back(std::move(object));
  }
  return list.dump(2);
}

}  // namespace tritonrl
