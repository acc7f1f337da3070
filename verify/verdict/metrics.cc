#include "verify/verdict/metrics.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {

namespace {

using Indicator = std::function<bool(const SampleScore&)>;
// Reduces an indicator over a task's samples to a number in [0, 1].
using PerTask = std::function<double(const std::vector<SampleScore>&, const Indicator&)>;
// Reduces the speedups of a task's samples to one speedup.
using PerTaskSpeedup = std::function<double(const std::vector<SampleScore>&)>;

Metrics Average(const std::map<std::string, std::vector<SampleScore>>& scores, const PerTask& rate,
                const PerTaskSpeedup& speedup) {
  Metrics m;
  for (const auto& [task, samples] : scores) {
    m.syntax += rate(samples, [](const SampleScore& s) { return s.syntax; });
    m.valid += rate(samples, [](const SampleScore& s) { return s.valid; });
    m.compiled += rate(samples, [](const SampleScore& s) { return s.compiled; });
    m.correct += rate(samples, [](const SampleScore& s) { return s.correct; });
    m.fast_1 +=
        rate(samples, [](const SampleScore& s) { return s.correct && s.speedup_low > 1.0; });
    m.fast_2 +=
        rate(samples, [](const SampleScore& s) { return s.correct && s.speedup_low > 2.0; });
    m.mean_speedup += speedup(samples);
    m.samples += static_cast<int>(samples.size());
    ++m.tasks;
  }
  if (m.tasks == 0) return m;
  for (double* value :
       {&m.syntax, &m.valid, &m.compiled, &m.correct, &m.fast_1, &m.fast_2, &m.mean_speedup}) {
    *value /= m.tasks;
  }
  return m;
}

// The expected maximum of k values drawn without replacement from `values`. The i-th smallest value
// (i from 0) is the maximum of C(i, k-1) of the C(n, k) subsets.
double ExpectedMaximum(std::vector<double> values, int k) {
  std::sort(values.begin(), values.end());
  const int n = static_cast<int>(values.size());
  double expected = 0.0;
  // chance = C(i, k-1) / C(n, k), computed from i = n-1, where it is k / n, downwards.
  double chance = static_cast<double>(k) / n;
  for (int i = n - 1; i >= k - 1; --i) {
    expected += chance * values[i];
    if (i > 0) chance *= static_cast<double>(i - k + 1) / i;
  }
  return expected;
}

}  // namespace

SampleScore ScoreOf(const Verdict& verdict) {
  return {.syntax = IsSyntaxOk(verdict),
          .valid = IsValid(verdict),
          .compiled = IsCompiled(verdict),
          .correct = IsCorrect(verdict),
          .speedup = SpeedupOf(verdict),
          .speedup_low = SpeedupLowOf(verdict)};
}

void MetricsBuilder::Add(const Verdict& verdict) {
  if (IsInfraError(verdict)) {
    ++infra_errors_;
    ++infra_errors_by_task_[verdict.task_id()];
    return;
  }
  modelled_ = modelled_ || verdict.speedup().modelled();
  scores_[verdict.task_id()].push_back(ScoreOf(verdict));
}

Metrics MetricsBuilder::MaxOverSamples() const { return MaxOverFirst(0); }

Metrics MetricsBuilder::MaxOverFirst(int k) const {
  auto count = [k](const std::vector<SampleScore>& samples) {
    return k <= 0 ? samples.size() : std::min<size_t>(k, samples.size());
  };
  Metrics m = Average(
      scores_,
      [&](const std::vector<SampleScore>& samples, const Indicator& is) {
        return std::any_of(samples.begin(), samples.begin() + count(samples), is) ? 1.0 : 0.0;
      },
      [&](const std::vector<SampleScore>& samples) {
        double best = 0.0;
        for (size_t i = 0; i < count(samples); ++i) best = std::max(best, samples[i].speedup);
        return best;
      });
  m.infra_errors = infra_errors_;
  m.modelled = modelled_;
  for (const auto& [task, faults] : infra_errors_by_task_)
    m.tasks_left_out += scores_.count(task) == 0;
  return m;
}

absl::StatusOr<Metrics> MetricsBuilder::PassAtK(int k) const {
  for (const auto& [task, samples] : scores_) {
    if (k < 1 || k > static_cast<int>(samples.size())) {
      return absl::InvalidArgumentError(absl::StrCat("pass@", k, " cannot be estimated: task ",
                                                     task, " has ", samples.size(), " samples"));
    }
  }
  Metrics m = Average(
      scores_,
      [k](const std::vector<SampleScore>& samples, const Indicator& is) {
        const int good = static_cast<int>(std::count_if(samples.begin(), samples.end(), is));
        return PassAtKEstimate(static_cast<int>(samples.size()), good, k);
      },
      [k](const std::vector<SampleScore>& samples) {
        std::vector<double> speedups;
        for (const SampleScore& s : samples) speedups.push_back(s.speedup);
        return ExpectedMaximum(std::move(speedups), k);
      });
  m.infra_errors = infra_errors_;
  m.modelled = modelled_;
  for (const auto& [task, faults] : infra_errors_by_task_)
    m.tasks_left_out += scores_.count(task) == 0;
  return m;
}

double PassAtKEstimate(int n, int c, int k) {
  if (n - c < k) return 1.0;
  // C(n-c, k) / C(n, k) = prod over i in (n-c, n] of (1 - k / i). The product does not overflow.
  double none = 1.0;
  for (int i = n - c + 1; i <= n; ++i) none *= 1.0 - static_cast<double>(k) / i;
  return 1.0 - none;
}

std::optional<Rewards> ComputeRewards(const Verdict& verdict, double speedup_clip) {
  if (IsInfraError(verdict)) return std::nullopt;
  Rewards rewards;
  if (!IsValid(verdict)) return rewards;
  rewards.correct = IsCorrect(verdict) ? 1.0 : 0.0;
  rewards.speedup = std::clamp(SpeedupOf(verdict), 0.0, speedup_clip);
  return rewards;
}

double UniformReward(const Rewards& rewards, double beta) {
  return beta * rewards.correct + (1.0 - beta) * rewards.speedup;
}

}  // namespace tritonrl
