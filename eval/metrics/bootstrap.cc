#include "eval/metrics/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/status.h"
#include "eval/metrics/student_t.h"

namespace tritonrl {
namespace {

absl::Status CheckOptions(const BootstrapOptions& options) {
  if (options.resamples < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the number of resamples is ", options.resamples, ", but must be positive"));
  }
  if (!(options.level > 0 && options.level < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the level of an interval is ", options.level, ", but must be in (0, 1)"));
  }
  return absl::OkStatus();
}

absl::Status CheckSeries(const Series& series) {
  if (series.tasks.empty()) return absl::InvalidArgumentError("a series without tasks has no mean");
  if (series.tasks.size() != series.values.size()) {
    return absl::InvalidArgumentError(absl::StrCat("a series has ", series.tasks.size(),
                                                   " tasks and ", series.values.size(), " values"));
  }
  const auto unsorted =
      std::adjacent_find(series.tasks.begin(), series.tasks.end(), std::greater_equal<>());
  if (unsorted != series.tasks.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tasks of a series must be sorted and differ: ", *unsorted));
  }
  for (size_t i = 0; i < series.values.size(); ++i) {
    if (std::isfinite(series.values[i])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the value of task ", series.tasks[i], " is ", series.values[i]));
  }
  return absl::OkStatus();
}

// The random numbers of a list of tasks.
Philox RandomOf(const std::vector<std::string>& tasks, const BootstrapOptions& options) {
  return Philox(MixKeys({options.seed, Hash64(absl::StrJoin(tasks, "\n"))}));
}

// Draws as many items as there are, with replacement: sets how often each is drawn.
void Draw(Philox* random, std::vector<double>* times) {
  std::fill(times->begin(), times->end(), 0.0);
  for (size_t i = 0; i < times->size(); ++i) ++(*times)[random->Below(times->size())];
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Mean(const std::vector<double>& values, const std::vector<double>& times) {
  return std::inner_product(values.begin(), values.end(), times.begin(), 0.0) /
         static_cast<double>(values.size());
}

// The share of resamples beyond each end of the interval for `units` resampled tasks or seeds. At
// least 2 units.
double ShareOutside(size_t units, double level) {
  const double n = static_cast<double>(units);
  const double t = StudentTCritical(1 - level, static_cast<int>(units) - 1);
  return std::erfc(t * std::sqrt(n / (n - 1)) / std::numbers::sqrt2) / 2;
}

Interval IntervalOf(double value, std::vector<double> resampled, double share_outside) {
  std::sort(resampled.begin(), resampled.end());
  const size_t beyond =
      std::min(static_cast<size_t>(share_outside * static_cast<double>(resampled.size())),
               (resampled.size() - 1) / 2);
  return {
      .value = value, .low = resampled[beyond], .high = resampled[resampled.size() - 1 - beyond]};
}

Interval Unknown(double value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {.value = value, .low = -kInfinity, .high = kInfinity};
}

// Sets the intervals of series that have the same tasks.
void BootstrapEqualTasks(const std::vector<const Series*>& series,
                         const std::vector<Interval*>& intervals, const BootstrapOptions& options) {
  const std::vector<std::string>& tasks = series[0]->tasks;
  if (tasks.size() < 2) {
    for (size_t i = 0; i < series.size(); ++i) *intervals[i] = Unknown(series[i]->values[0]);
    return;
  }
  Philox random = RandomOf(tasks, options);
  std::vector<double> times(tasks.size());
  std::vector<std::vector<double>> means(series.size());
  for (int resample = 0; resample < options.resamples; ++resample) {
    Draw(&random, &times);
    for (size_t i = 0; i < series.size(); ++i) means[i].push_back(Mean(series[i]->values, times));
  }
  const double outside = ShareOutside(tasks.size(), options.level);
  for (size_t i = 0; i < series.size(); ++i) {
    *intervals[i] = IntervalOf(Mean(series[i]->values), std::move(means[i]), outside);
  }
}

// The tasks that have a value in all series. InvalidArgument if one is missing where it was not
// left out, or if there is none.
absl::StatusOr<std::vector<std::string>> CommonTasks(const std::vector<const Series*>& series) {
  std::map<std::string, size_t> counts;
  for (const Series* one : series) {
    for (const std::string& task : one->tasks) ++counts[task];
  }
  std::vector<std::string> common;
  for (const auto& [task, count] : counts) {
    if (count == series.size()) {
      common.push_back(task);
      continue;
    }
    for (const Series* one : series) {
      if (std::binary_search(one->tasks.begin(), one->tasks.end(), task) ||
          std::binary_search(one->left_out.begin(), one->left_out.end(), task)) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("the series have different tasks: ", task, " is not in all of them"));
    }
  }
  if (common.empty()) return absl::InvalidArgumentError("the series have no task in common");
  return common;
}

// a - b for each of `tasks`, which both have.
std::vector<double> Differences(const Series& a, const Series& b,
                                const std::vector<std::string>& tasks) {
  const auto value = [](const Series& series, const std::string& task) {
    const auto it = std::lower_bound(series.tasks.begin(), series.tasks.end(), task);
    return series.values[it - series.tasks.begin()];
  };
  std::vector<double> differences;
  for (const std::string& task : tasks) differences.push_back(value(a, task) - value(b, task));
  return differences;
}

// The series of all seeds. InvalidArgument if the seeds differ.
absl::StatusOr<std::vector<const Series*>> PairedSeries(const std::map<uint64_t, Series>& a,
                                                        const std::map<uint64_t, Series>& b) {
  std::vector<const Series*> all;
  for (const auto* runs : {&a, &b}) {
    const auto& others = runs == &a ? b : a;
    for (const auto& [seed, series] : *runs) {
      if (others.count(seed) == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("seed ", seed, " is in one of the two compared trainings only"));
      }
      RETURN_IF_ERROR(AddContext(CheckSeries(series), absl::StrCat("seed ", seed)));
      all.push_back(&series);
    }
  }
  if (all.empty()) return absl::InvalidArgumentError("there are no seeds to compare");
  return all;
}

}  // namespace

absl::StatusOr<std::vector<Interval>> BootstrapMeans(absl::Span<const Series> series,
                                                     const BootstrapOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  std::vector<Interval> intervals(series.size());
  struct Group {
    std::vector<const Series*> series;
    std::vector<Interval*> intervals;
  };
  std::map<std::vector<std::string>, Group> groups;  // by tasks
  for (size_t i = 0; i < series.size(); ++i) {
    RETURN_IF_ERROR(CheckSeries(series[i]));
    Group& group = groups[series[i].tasks];
    group.series.push_back(&series[i]);
    group.intervals.push_back(&intervals[i]);
  }
  for (const auto& [tasks, group] : groups) {
    BootstrapEqualTasks(group.series, group.intervals, options);
  }
  return intervals;
}

absl::StatusOr<Interval> PairedDifference(const Series& a, const Series& b,
                                          const BootstrapOptions& options) {
  RETURN_IF_ERROR(CheckSeries(a));
  RETURN_IF_ERROR(CheckSeries(b));
  Series difference;
  ASSIGN_OR_RETURN(difference.tasks, CommonTasks({&a, &b}));
  difference.values = Differences(a, b, difference.tasks);
  ASSIGN_OR_RETURN(const std::vector<Interval> intervals, BootstrapMeans({difference}, options));
  return intervals[0];
}

absl::StatusOr<Interval> PairedDifferenceOfRuns(const std::map<uint64_t, Series>& a,
                                                const std::map<uint64_t, Series>& b,
                                                const BootstrapOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(const std::vector<const Series*> all, PairedSeries(a, b));
  ASSIGN_OR_RETURN(const std::vector<std::string> tasks, CommonTasks(all));
  std::vector<std::vector<double>> differences;  // by seed, then task
  std::vector<double> of_seeds;                  // their means over tasks
  for (const auto& [seed, series] : a) {
    differences.push_back(Differences(series, b.at(seed), tasks));
    of_seeds.push_back(Mean(differences.back()));
  }
  const size_t units = std::min(differences.size(), tasks.size());
  if (units < 2) return Unknown(Mean(of_seeds));
  Philox random = RandomOf(tasks, options);
  std::vector<double> seed_times(differences.size()), task_times(tasks.size());
  std::vector<double> means, drawn(differences.size());
  for (int resample = 0; resample < options.resamples; ++resample) {
    Draw(&random, &seed_times);
    Draw(&random, &task_times);
    for (size_t i = 0; i < drawn.size(); ++i) drawn[i] = Mean(differences[i], task_times);
    means.push_back(Mean(drawn, seed_times));
  }
  return IntervalOf(Mean(of_seeds), std::move(means), ShareOutside(units, options.level));
}

}  // namespace tritonrl
