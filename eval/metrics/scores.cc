#include "eval/metrics/scores.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

// The samples of one task or variant.
struct Samples {
  std::vector<double> values;  // of those with a verdict, in the order of their numbers
  int lost = 0;

  int total() const { return static_cast<int>(values.size()) + lost; }
};

bool IsOpen(Metric metric) {
  return metric == Metric::kOpenCompiled || metric == Metric::kOpenCorrect;
}

double ValueOf(const SampleScore& score, Metric metric) {
  switch (metric) {
    case Metric::kValid:
      return score.valid;
    case Metric::kCompiled:
    case Metric::kOpenCompiled:
      return score.compiled;
    case Metric::kCorrect:
    case Metric::kOpenCorrect:
      return score.correct;
    case Metric::kFast1:
      return score.correct && score.speedup_low > 1.0;
    case Metric::kFast2:
      return score.correct && score.speedup_low > 2.0;
    case Metric::kMeanSpeedup:
      return score.speedup;
  }
  return 0;  // All values of the enumeration return above.
}

// The sample's value; nullopt without a verdict.
std::optional<double> ValueOf(const ScoredSample& sample, Metric metric) {
  if (IsOpen(metric)) {
    if (!sample.open.has_value()) return std::nullopt;
    return ValueOf(*sample.open, metric);
  }
  if (sample.failure == FailureKind::kNoVerdict) return std::nullopt;
  return ValueOf(sample.score, metric);
}

// The samples by task id. InvalidArgument if a sample number is there twice.
absl::StatusOr<std::map<std::string, Samples>> ByTask(absl::Span<const ScoredSample> samples,
                                                      Metric metric) {
  std::map<std::string, std::map<int, std::optional<double>>> numbered;
  for (const ScoredSample& sample : samples) {
    if (!numbered[sample.task].emplace(sample.sample, ValueOf(sample, metric)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("task ", sample.task, " has sample ", sample.sample,
                       " twice; several turns of a sample must be reduced to one first"));
    }
  }
  std::map<std::string, Samples> by_task;
  for (const auto& [task, values] : numbered) {
    Samples& of_task = by_task[task];
    for (const auto& [number, value] : values) {
      if (value.has_value()) {
        of_task.values.push_back(*value);
      } else {
        ++of_task.lost;
      }
    }
  }
  return by_task;
}

// The expected value of the minimum over `variants` of the maximum over k samples, which are drawn
// from each variant apart and without replacement, or are all samples of a variant that has fewer.
// Each variant has samples, and no value is negative.
double ExpectedMinimum(absl::Span<const std::vector<double>> variants, int k) {
  std::set<double, std::greater<>> thresholds;
  for (const std::vector<double>& values : variants) {
    thresholds.insert(values.begin(), values.end());
  }
  // The value is `threshold` with the chance of reaching it less the chance of reaching the
  // threshold above.
  double expected = 0, above = 0;
  for (const double threshold : thresholds) {
    double reached = 1;
    for (const std::vector<double>& values : variants) {
      const int n = static_cast<int>(values.size());
      const auto good = std::count_if(values.begin(), values.end(),
                                      [threshold](double value) { return value >= threshold; });
      reached *= PassAtKEstimate(n, static_cast<int>(good), std::min(k, n));
    }
    expected += threshold * (reached - above);
    above = reached;
  }
  return expected;
}

// Adds the value of one task, or leaves it out.
void AddTask(const std::string& task, std::vector<Samples> variants, Estimator estimator, int k,
             Series* series) {
  std::vector<std::vector<double>> values;
  bool is_short = false, is_empty = false;
  for (Samples& variant : variants) {
    series->lost += variant.lost;
    is_short = is_short || variant.values.size() < k;
    is_empty = is_empty || variant.values.empty();
    // The maximum over the first k is the expected maximum if there are no others.
    if (estimator == Estimator::kMaxOverFirst && variant.values.size() > k) {
      variant.values.resize(k);
    }
    values.push_back(std::move(variant.values));
  }
  if (is_empty) {
    series->left_out.push_back(task);
    return;
  }
  series->short_tasks += is_short;
  series->tasks.push_back(task);
  series->values.push_back(ExpectedMinimum(values, k));
}

// Adds to `best` what `other` passes.
void Improve(const SampleScore& other, SampleScore* best) {
  best->syntax = best->syntax || other.syntax;
  best->valid = best->valid || other.valid;
  best->compiled = best->compiled || other.compiled;
  best->correct = best->correct || other.correct;
  best->speedup = std::max(best->speedup, other.speedup);
  best->speedup_low = std::max(best->speedup_low, other.speedup_low);
}

}  // namespace

FailureKind FailureOf(const Verdict& verdict) {
  if (IsInfraError(verdict)) return FailureKind::kNoVerdict;
  if (!IsSyntaxOk(verdict)) return FailureKind::kSyntax;
  if (!IsValid(verdict)) return FailureKind::kFunctionality;
  if (!IsCompiled(verdict)) return FailureKind::kCompile;
  if (!IsCorrect(verdict)) return FailureKind::kIncorrect;
  return FailureKind::kCorrect;
}

ScoredSample ScoreSample(const Verdict& verdict) {
  ScoredSample sample;
  sample.task = verdict.task_id();
  sample.failure = FailureOf(verdict);
  if (sample.failure == FailureKind::kNoVerdict) return sample;
  sample.score = ScoreOf(verdict);
  sample.modelled = verdict.speedup().modelled();
  return sample;
}

std::vector<ScoredSample> BestOfTurns(absl::Span<const ScoredSample> samples, int turns) {
  std::map<std::pair<std::string, int>, ScoredSample> best;
  for (const ScoredSample& turn : samples) {
    if (turn.turn >= turns) continue;
    const auto [it, first] = best.emplace(std::pair(turn.task, turn.sample), turn);
    ScoredSample& sample = it->second;
    if (first) {
      sample.turn = 0;
      continue;
    }
    Improve(turn.score, &sample.score);
    if (turn.open.has_value()) {
      if (!sample.open.has_value()) sample.open.emplace();
      Improve(*turn.open, &*sample.open);
    }
    sample.failure = std::max(sample.failure, turn.failure);
    sample.modelled = sample.modelled || turn.modelled;
  }
  std::vector<ScoredSample> result;
  for (auto& [name, sample] : best) result.push_back(std::move(sample));
  return result;
}

absl::StatusOr<Series> PerTask(absl::Span<const ScoredSample> samples, Metric metric,
                               Estimator estimator, int k, Shapes shapes) {
  if (k < 1) return absl::InvalidArgumentError(absl::StrCat("k is ", k, ", but must be positive"));
  if (IsOpen(metric) && std::none_of(samples.begin(), samples.end(),
                                     [](const ScoredSample& s) { return s.open.has_value(); })) {
    return absl::InvalidArgumentError("the samples were not verified without functionality checks");
  }
  ASSIGN_OR_RETURN(auto by_task, ByTask(samples, metric));
  std::map<std::string, std::vector<Samples>> tasks;
  for (auto& [id, of_task] : by_task) {
    if (of_task.total() < k) {
      return absl::InvalidArgumentError(
          absl::StrCat("task ", id, " has ", of_task.total(), " samples, but k is ", k));
    }
    const bool joined = shapes == Shapes::kAllMustPass;
    tasks[joined ? std::string(OriginOf(id)) : id].push_back(std::move(of_task));
  }
  Series series;
  for (auto& [task, variants] : tasks) {
    AddTask(task, std::move(variants), estimator, k, &series);
  }
  return series;
}

absl::string_view OriginOf(absl::string_view task) {
  const size_t end = task.rfind("_v");
  if (end == absl::string_view::npos || end + 2 == task.size()) return task;
  const absl::string_view number = task.substr(end + 2);
  if (!std::all_of(number.begin(), number.end(), absl::ascii_isdigit)) return task;
  return task.substr(0, end);
}

}  // namespace tritonrl
