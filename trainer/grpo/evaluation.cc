#include "trainer/grpo/evaluation.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

// The stored fields of Metrics and their names.
struct Figure {
  const char* name;
  double Metrics::*value;
};
constexpr Figure kFigures[] = {
    {"valid", &Metrics::valid},     {"compiled", &Metrics::compiled},
    {"correct", &Metrics::correct}, {"fast_1", &Metrics::fast_1},
    {"fast_2", &Metrics::fast_2},   {"mean_speedup", &Metrics::mean_speedup}};

void AddMetrics(const std::string& prefix, const Metrics& metrics, MetricFields* fields) {
  for (const Figure& figure : kFigures) {
    fields->emplace_back(prefix + figure.name, metrics.*figure.value);
  }
}

Metrics ReadMetrics(const nlohmann::json& json, const std::string& prefix) {
  Metrics metrics;
  for (const Figure& figure : kFigures)
    metrics.*figure.value = json.value(prefix + figure.name, 0.0);
  metrics.modelled = json.value("modelled", false);
  return metrics;
}

// The fields of one group of tasks, after `prefix`.
void AddTaskMetrics(const std::string& prefix, const TaskMetrics& metrics, MetricFields* fields) {
  for (const auto& [k, at_k] : metrics.pass_at) {
    AddMetrics(absl::StrCat(prefix, "pass_", k, "_"), at_k, fields);
  }
  for (const auto& [k, first_k] : metrics.max_over_first) {
    AddMetrics(absl::StrCat(prefix, "max_", k, "_"), first_k, fields);
  }
  if (metrics.has_greedy) AddMetrics(prefix + "greedy_", metrics.greedy, fields);
}

// Inverse of AddTaskMetrics for numbers of samples up to `k`.
void ReadTaskMetrics(const nlohmann::json& json, const std::string& prefix, int k,
                     TaskMetrics* metrics) {
  metrics->tasks = json.value(prefix + "tasks", 0);
  const auto read = [&](const std::string& name) {
    Metrics figures = ReadMetrics(json, prefix + name);
    figures.tasks = metrics->tasks;
    return figures;
  };
  const auto has = [&](const std::string& name) {
    return json.contains(prefix + name + "correct");
  };
  for (int at = 1; at <= k; ++at) {
    const std::string pass = absl::StrCat("pass_", at, "_"), max = absl::StrCat("max_", at, "_");
    if (has(pass)) metrics->pass_at[at] = read(pass);
    if (has(max)) metrics->max_over_first[at] = read(max);
  }
  metrics->has_greedy = has("greedy_");
  if (metrics->has_greedy) metrics->greedy = read("greedy_");
}

constexpr int kMaxLevel = 9;

std::string LevelPrefix(int level) { return absl::StrCat("level", level, "_"); }

// Builds a table with rows of a label, the values before and after, and the change.
class Table {
 public:
  explicit Table(bool two) : two_(two) {}

  void Percent(const std::string& label, double before, double after) {
    Row(label, absl::StrFormat("%.1f %%", 100 * before), absl::StrFormat("%.1f %%", 100 * after),
        absl::StrFormat("%+.1f", 100 * (after - before)));
  }
  void Number(const std::string& label, double before, double after, const char* unit) {
    Row(label, absl::StrFormat("%.2f%s", before, unit), absl::StrFormat("%.2f%s", after, unit),
        absl::StrFormat("%+.2f", after - before));
  }
  void Row(const std::string& label, const std::string& before, const std::string& after,
           const std::string& change) {
    absl::StrAppendFormat(&text_, "  %-30s %9s", label, before);
    if (two_) absl::StrAppendFormat(&text_, "  %9s  %8s", after, change);
    text_ += "\n";
  }
  void Line(const std::string& line) { text_ += line + "\n"; }
  const std::string& text() const { return text_; }

 private:
  bool two_;
  std::string text_;
};

std::string SpeedupLabel(const std::string& name, bool modelled) {
  return modelled ? name + " (modelled)" : name;
}

}  // namespace

double FusedShare(const std::vector<SampleRecord>& records) {
  int fused = 0, split = 0;
  for (const SampleRecord& record : records) {
    fused += record.plan_kind == PlanKind::kFused;
    split += record.plan_kind == PlanKind::kSplit;
  }
  return fused + split > 0 ? static_cast<double>(fused) / (fused + split) : 0.0;
}

namespace {

// The largest number of samples at which all tasks can be evaluated. A task that lost samples to
// infrastructure errors limits it for all tasks, so that all have the same number.
int CommonSamples(const std::vector<SampleRecord>& sampled, int k) {
  std::map<std::string, int> counted;  // samples of a task that are not infrastructure errors
  for (const SampleRecord& record : sampled) {
    counted[record.task_id] += IsInfraError(record.verdict) ? 0 : 1;
  }
  for (const auto& [task, n] : counted) {
    if (n > 0) k = std::min(k, n);
  }
  return k;
}

// Fills in the figures of the samples at 1, 5, 10, ... and k.
absl::Status FillSampled(const MetricsBuilder& builder, int k, TaskMetrics* metrics) {
  for (const int at : std::set<int>{1, 5, 10, 20, 50, 100, k}) {
    if (at > k) continue;
    ASSIGN_OR_RETURN(metrics->pass_at[at], builder.PassAtK(at));
    metrics->max_over_first[at] = builder.MaxOverFirst(at);
  }
  metrics->tasks = metrics->pass_at[1].tasks;
  return absl::OkStatus();
}

void FillGreedy(const MetricsBuilder& builder, TaskMetrics* metrics) {
  metrics->has_greedy = true;
  metrics->greedy = builder.MaxOverSamples();
  if (metrics->pass_at.empty()) metrics->tasks = metrics->greedy.tasks;
}

}  // namespace

absl::StatusOr<EvaluationResult> Summarise(const std::vector<SampleRecord>& sampled,
                                           const std::vector<SampleRecord>& greedy) {
  EvaluationResult result;
  constexpr int kAll = 0;  // in the place of a level
  std::map<int, MetricsBuilder> of_samples, of_greedy;
  double tokens = 0;
  for (const SampleRecord& record : sampled) {
    of_samples[kAll].Add(record.verdict);
    if (record.level > 0) of_samples[record.level].Add(record.verdict);
    result.k = std::max(result.k, record.index + 1);
    tokens += record.tokens;
  }
  for (const SampleRecord& record : greedy) {
    of_greedy[kAll].Add(record.verdict);
    if (record.level > 0) of_greedy[record.level].Add(record.verdict);
  }
  const auto part = [&](int level) -> TaskMetrics* {
    return level == kAll ? &result : &result.levels[level];
  };
  const int k = CommonSamples(sampled, result.k);
  for (const auto& [level, builder] : of_samples) {
    RETURN_IF_ERROR(FillSampled(builder, k, part(level)));
  }
  for (const auto& [level, builder] : of_greedy) FillGreedy(builder, part(level));
  if (!sampled.empty()) {
    result.mean_tokens = tokens / sampled.size();
    result.infra_errors = result.pass_at.at(1).infra_errors;
    result.fused_share = FusedShare(sampled);
  }
  if (!greedy.empty()) {
    result.greedy_fused_share = FusedShare(greedy);
    result.infra_errors += result.greedy.infra_errors;
  }
  return result;
}

MetricFields EvaluationFields(const EvaluationResult& result) {
  MetricFields fields;
  const bool modelled =
      (result.sampled() && result.pass_at.count(1) > 0 && result.pass_at.at(1).modelled) ||
      (result.has_greedy && result.greedy.modelled);
  fields.emplace_back("k", static_cast<int64_t>(result.k));
  fields.emplace_back("temperature", result.temperature);
  fields.emplace_back("modelled", modelled);
  fields.emplace_back("tasks", static_cast<int64_t>(result.tasks));
  if (result.pass_at.count(1) > 0) {
    AddMetrics("", result.pass_at.at(1), &fields);
    fields.emplace_back("fused_rate", result.fused_share);
    fields.emplace_back("mean_tokens", result.mean_tokens);
  }
  AddTaskMetrics("", result, &fields);
  if (result.has_greedy) fields.emplace_back("greedy_fused_rate", result.greedy_fused_share);
  for (const auto& [level, metrics] : result.levels) {
    const std::string prefix = LevelPrefix(level);
    fields.emplace_back(prefix + "tasks", static_cast<int64_t>(metrics.tasks));
    if (metrics.pass_at.count(1) > 0) AddMetrics(prefix, metrics.pass_at.at(1), &fields);
    AddTaskMetrics(prefix, metrics, &fields);
  }
  fields.emplace_back("infra_errors", static_cast<int64_t>(result.infra_errors));
  fields.emplace_back("seconds", result.seconds);
  return fields;
}

absl::StatusOr<EvaluationResult> EvaluationFromJson(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("step")) {
    return absl::DataLossError("a line of the evaluations is no JSON object with a step");
  }
  EvaluationResult result;
  result.step = json.value("step", int64_t{0});
  result.k = json.value("k", 0);
  result.temperature = json.value("temperature", 1.0);
  ReadTaskMetrics(json, "", result.k, &result);
  for (int level = 1; level <= kMaxLevel; ++level) {
    const std::string prefix = LevelPrefix(level);
    if (!json.contains(prefix + "tasks")) continue;
    ReadTaskMetrics(json, prefix, result.k, &result.levels[level]);
  }
  result.fused_share = json.value("fused_rate", 0.0);
  result.mean_tokens = json.value("mean_tokens", 0.0);
  result.greedy_fused_share = json.value("greedy_fused_rate", 0.0);
  result.infra_errors = json.value("infra_errors", 0);
  result.seconds = json.value("seconds", 0.0);
  return result;
}

namespace {

// The rows of one level: few, as the total has all.
void AddLevelRows(int level, const TaskMetrics& before, const TaskMetrics& after, Table* table) {
  const auto label = [level](const std::string& name) {
    return absl::StrCat("level ", level, ": ", name);
  };
  table->Row(label("tasks"), absl::StrCat(before.tasks), absl::StrCat(after.tasks), "");
  for (const auto& [k, metrics] : before.pass_at) {
    const auto it = after.pass_at.find(k);
    if (it == after.pass_at.end()) continue;
    const Metrics& now = it->second;
    if (k > 1) {
      table->Percent(label(absl::StrCat("correct, pass@", k)), metrics.correct, now.correct);
      continue;
    }
    table->Percent(label("correct"), metrics.correct, now.correct);
    table->Percent(label("speedup > 1"), metrics.fast_1, now.fast_1);
    table->Number(label("mean speedup"), metrics.mean_speedup, now.mean_speedup, "x");
  }
  if (before.has_greedy && after.has_greedy) {
    table->Percent(label("correct, greedy"), before.greedy.correct, after.greedy.correct);
  }
}

}  // namespace

std::string EvaluationTable(const EvaluationResult& before, const EvaluationResult* after) {
  const EvaluationResult& last = after != nullptr ? *after : before;
  Table table(after != nullptr);
  table.Line(absl::StrCat(
      "Held-out tasks: ", before.tasks,
      before.sampled()
          ? absl::StrCat(", ", before.k, " samples each at temperature ", before.temperature)
          : ""));
  table.Row("", after != nullptr ? "before" : "result", "after", "change");
  for (const auto& [k, metrics] : before.pass_at) {
    auto it = last.pass_at.find(k);
    if (it == last.pass_at.end()) continue;
    const Metrics& now = it->second;
    if (k == 1) {
      table.Percent("valid", metrics.valid, now.valid);
      table.Percent("compiled", metrics.compiled, now.compiled);
      table.Percent("correct", metrics.correct, now.correct);
      table.Percent("fused plans", before.fused_share, last.fused_share);
      table.Percent(SpeedupLabel("speedup > 1", metrics.modelled), metrics.fast_1, now.fast_1);
      table.Percent(SpeedupLabel("speedup > 2", metrics.modelled), metrics.fast_2, now.fast_2);
      table.Number(SpeedupLabel("mean speedup", metrics.modelled), metrics.mean_speedup,
                   now.mean_speedup, "x");
      continue;
    }
    table.Percent(absl::StrCat("correct, pass@", k), metrics.correct, now.correct);
  }
  for (const auto& [k, metrics] : before.max_over_first) {
    const auto it = last.max_over_first.find(k);
    // With all samples this is pass@k.
    if (k == 1 || k == before.k || it == last.max_over_first.end()) continue;
    table.Percent(absl::StrCat("correct, max of first ", k), metrics.correct, it->second.correct);
  }
  if (before.has_greedy && last.has_greedy) {
    table.Percent("correct, greedy", before.greedy.correct, last.greedy.correct);
    table.Percent("fused plans, greedy", before.greedy_fused_share, last.greedy_fused_share);
  }
  for (const auto& [level, metrics] : before.levels) {
    const auto it = last.levels.find(level);
    // One level is the total.
    if (before.levels.size() < 2 || it == last.levels.end()) continue;
    AddLevelRows(level, metrics, it->second, &table);
  }
  if (before.infra_errors + last.infra_errors > 0) {
    table.Row("samples dropped (infra errors)", absl::StrCat(before.infra_errors),
              absl::StrCat(last.infra_errors), "");
  }
  return table.text();
}

}  // namespace tritonrl
