// How many seeds a comparison of trainings needs, by the two-sided t-test of paired differences;
// and the area under a training curve, the figure that is compared.
#ifndef TRITONRL_EVAL_METRICS_POWER_H_
#define TRITONRL_EVAL_METRICS_POWER_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tritonrl {

// Returns the smallest number of seeds with which the test at level `alpha` finds a true mean
// difference of `difference` with chance `power` or more. `deviation` is the standard deviation,
// over seeds, of the differences between the two trainings of a seed, in the same unit.
// InvalidArgument if deviation < 0, difference <= 0, or alpha < 0.001 or power > 0.999, where the
// integration is not exact enough. OutOfRange if more than 100,000 seeds are needed.
absl::StatusOr<int> SeedsNeeded(double deviation, double difference, double alpha = 0.05,
                                double power = 0.8);

// Returns the smallest true mean difference that the test finds so with `seeds` seeds, from 2 to
// 100,000. Other errors as above.
absl::StatusOr<double> DetectableDifference(double deviation, int seeds, double alpha = 0.05,
                                            double power = 0.8);

// Returns the mean height of the curve through `points` (step, value), by trapezoids; of a single
// point its value. InvalidArgument if there is no point or the steps do not ascend.
absl::StatusOr<double> AreaUnderCurve(absl::Span<const std::pair<int64_t, double>> points);

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_METRICS_POWER_H_
