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
  metrics.tasks = json.value("tasks", 0);
  metrics.modelled = json.value("modelled", false);
  return metrics;
}

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

absl::StatusOr<EvaluationResult> Summarise(const std::vector<SampleRecord>& sampled,
                                           const std::vector<SampleRecord>& greedy) {
  EvaluationResult result;
  MetricsBuilder builder;
  std::map<std::string, int> counted;  // samples of a task that are not infrastructure errors
  double tokens = 0;
  for (const SampleRecord& record : sampled) {
    builder.Add(record.verdict);
    int& n = counted[record.task_id];
    if (!IsInfraError(record.verdict)) ++n;
    result.k = std::max(result.k, record.index + 1);
    tokens += record.tokens;
  }
  if (!sampled.empty()) {
    result.mean_tokens = tokens / sampled.size();
    // A task that lost samples to infrastructure errors limits k for all tasks, so that all are
    // evaluated with the same k.
    int k = result.k;
    for (const auto& [task, n] : counted) {
      if (n > 0) k = std::min(k, n);
    }
    for (int at : std::set<int>{1, 5, 10, 20, 50, 100, k}) {
      if (at > k) continue;
      ASSIGN_OR_RETURN(result.pass_at[at], builder.PassAtK(at));
      result.infra_errors = result.pass_at[at].infra_errors;
    }
    result.fused_share = FusedShare(sampled);
  }
  if (!greedy.empty()) {
    MetricsBuilder greedy_builder;
    for (const SampleRecord& record : greedy) greedy_builder.Add(record.verdict);
    result.has_greedy = true;
    result.greedy = greedy_builder.MaxOverSamples();
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
  if (result.pass_at.count(1) > 0) {
    const Metrics& mean = result.pass_at.at(1);
    fields.emplace_back("tasks", static_cast<int64_t>(mean.tasks));
    AddMetrics("", mean, &fields);
    fields.emplace_back("fused_rate", result.fused_share);
    fields.emplace_back("mean_tokens", result.mean_tokens);
  }
  for (const auto& [k, metrics] : result.pass_at) {
    AddMetrics(absl::StrCat("pass_", k, "_"), metrics, &fields);
  }
  if (result.has_greedy) {
    if (result.pass_at.empty()) {
      fields.emplace_back("tasks", static_cast<int64_t>(result.greedy.tasks));
    }
    AddMetrics("greedy_", result.greedy, &fields);
    fields.emplace_back("greedy_fused_rate", result.greedy_fused_share);
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
  for (int k = 1; k <= result.k; ++k) {
    const std::string prefix = absl::StrCat("pass_", k, "_");
    if (json.contains(prefix + "correct")) result.pass_at[k] = ReadMetrics(json, prefix);
  }
  result.fused_share = json.value("fused_rate", 0.0);
  result.mean_tokens = json.value("mean_tokens", 0.0);
  result.has_greedy = json.contains("greedy_correct");
  if (result.has_greedy) result.greedy = ReadMetrics(json, "greedy_");
  result.greedy_fused_share = json.value("greedy_fused_rate", 0.0);
  result.infra_errors = json.value("infra_errors", 0);
  result.seconds = json.value("seconds", 0.0);
  return result;
}

std::string EvaluationTable(const EvaluationResult& before, const EvaluationResult* after) {
  const EvaluationResult& last = after != nullptr ? *after : before;
  Table table(after != nullptr);
  const int tasks = before.sampled() && before.pass_at.count(1) > 0 ? before.pass_at.at(1).tasks
                                                                    : before.greedy.tasks;
  table.Line(absl::StrCat(
      "Held-out tasks: ", tasks,
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
  if (before.has_greedy && last.has_greedy) {
    table.Percent("correct, greedy", before.greedy.correct, last.greedy.correct);
    table.Percent("fused plans, greedy", before.greedy_fused_share, last.greedy_fused_share);
  }
  if (before.infra_errors + last.infra_errors > 0) {
    table.Row("samples dropped (infra errors)", absl::StrCat(before.infra_errors),
              absl::StrCat(last.infra_errors), "");
  }
  return table.text();
}

}  // namespace tritonrl
