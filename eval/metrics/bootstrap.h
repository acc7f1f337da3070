// Confidence intervals of means over tasks, and of differences between evaluations and between
// trainings, by the bootstrap (Efron 1979). All draws are keyed: the same series and options give
// the same intervals.
#ifndef TRITONRL_EVAL_METRICS_BOOTSTRAP_H_
#define TRITONRL_EVAL_METRICS_BOOTSTRAP_H_

#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "eval/metrics/scores.h"

namespace tritonrl {

// A mean with the ends of its interval, in the unit of the values. The ends are -infinity and
// infinity if a single task or seed shows nothing of their spread.
struct Interval {
  double value = 0, low = 0, high = 0;

  // Whether it has ends.
  bool bounded() const { return std::isfinite(low) && std::isfinite(high); }
};

struct BootstrapOptions {
  int resamples = 2000;
  uint64_t seed = 0;
  double level = 0.95;
};

// Returns the mean of each series with its percentile interval over resampled tasks. All series of
// equal tasks share the draws of tasks, and their intervals do not depend on the other series.
//
// The percentiles are those of Student's t for the number of tasks ("expanded", Hesterberg, The
// American Statistician 69, 2015, 3.2.4), because a percentile interval is too narrow for few
// tasks. The intervals contain the spread over tasks and over samples, but not over trainings. If
// all values are equal, such as 0 of 100, the width is 0: the bootstrap sees no spread there.
//
// InvalidArgument if a series has no task, tasks that are not sorted, another number of values than
// of tasks or a value that is not finite; or if an option is out of range.
absl::StatusOr<std::vector<Interval>> BootstrapMeans(absl::Span<const Series> series,
                                                     const BootstrapOptions& options);

// Returns the mean of a - b over the tasks that have a value in both, with its interval: values are
// paired by task, so that what makes a task hard for both cancels. A task may be missing in one
// series only if it is in its `left_out`; otherwise InvalidArgument names it. Further errors as
// above.
absl::StatusOr<Interval> PairedDifference(const Series& a, const Series& b,
                                          const BootstrapOptions& options);

// The same for trainings with several seeds, given by seed: the mean of a - b over seeds and tasks,
// paired by both. A resample draws seeds, then tasks, which all its seeds share; its percentiles
// are those for the smaller of the two numbers, so that the interval is rather too wide where most
// of the spread is over the others. Only tasks with a value in all series count.
// InvalidArgument also if a seed is in one of the two only.
absl::StatusOr<Interval> PairedDifferenceOfRuns(const std::map<uint64_t, Series>& a,
                                                const std::map<uint64_t, Series>& b,
                                                const BootstrapOptions& options);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_METRICS_BOOTSTRAP_H_
