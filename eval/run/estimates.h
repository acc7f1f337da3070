// All figures of an evaluation, each with its interval: both estimators, each k, each level.
#ifndef TRITONRL_EVAL_RUN_ESTIMATES_H_
#define TRITONRL_EVAL_RUN_ESTIMATES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "eval/metrics/bootstrap.h"
#include "eval/metrics/scores.h"

namespace tritonrl {

// The means over the tasks of one level for one k.
struct EstimateRow {
  int level = 0;  // 0: all levels
  int k = 1;
  Estimator estimator = Estimator::kMaxOverFirst;
  int tasks = 0;        // N: tasks with a value
  int lost = 0;         // samples without a verdict
  int short_tasks = 0;  // tasks with fewer than k samples that have one
  // valid, compiled, correct, fast_1, fast_2, mean speedup; compiled and correct without
  // functionality checks, if any sample has such a score.
  std::map<Metric, Interval> values;
};

// Rows for k = 1, 5, 10 and the number of samples, as far as each task has so many: the paper's
// estimator (maximum over the first k) and the unbiased one, which are the same for k = 1 of one
// sample. Rows of all levels come first, then those of each level if there are several.
// InvalidArgument: a task has fewer than `samples_per_task` samples, or none has a verdict.
absl::StatusOr<std::vector<EstimateRow>> Estimate(absl::Span<const ScoredSample> samples,
                                                  int samples_per_task,
                                                  const BootstrapOptions& options = {});

// A Markdown table; shares in percent, each value with its 95 % interval over tasks. `modelled`
// marks the metrics that depend on times.
std::string EstimatesTable(absl::Span<const EstimateRow> rows, bool modelled);

// A JSON array with an object for each row: [value, low, high] of each metric; the ends are null
// where there is no interval.
std::string EstimatesJson(absl::Span<const EstimateRow> rows);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_RUN_ESTIMATES_H_
