#include "eval/metrics/power.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "eval/metrics/student_t.h"

namespace tritonrl {
namespace {

constexpr int kMaxSeeds = 100000;

absl::Status Check(double deviation, double alpha, double power) {
  if (!(deviation >= 0 && std::isfinite(deviation))) {
    return absl::InvalidArgumentError(
        absl::StrCat("the deviation of differences is ", deviation, ", but must not be negative"));
  }
  if (!(alpha >= 0.001 && alpha < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("alpha is ", alpha, ", but must be in [0.001, 1)"));
  }
  if (!(power > 0 && power <= 0.999)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the power is ", power, ", but must be in (0, 0.999]"));
  }
  return absl::OkStatus();
}

// The power of the test of `seeds` differences. `ratio`: mean difference / deviation.
double PowerOf(int seeds, double ratio, double alpha) {
  return ShiftedStudentTOutside(StudentTCritical(alpha, seeds - 1), seeds - 1,
                                ratio * std::sqrt(seeds));
}

}  // namespace

absl::StatusOr<int> SeedsNeeded(double deviation, double difference, double alpha, double power) {
  RETURN_IF_ERROR(Check(deviation, alpha, power));
  if (!(difference > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the difference is ", difference, ", but must be positive"));
  }
  if (deviation == 0) return 2;
  const auto enough = [&](int seeds) {
    return PowerOf(seeds, difference / deviation, alpha) >= power;
  };
  int high = 2;
  while (!enough(high)) {
    if (high == kMaxSeeds) {
      return absl::OutOfRangeError(absl::StrCat("a difference of ", difference,
                                                " with a deviation of ", deviation,
                                                " needs more than ", kMaxSeeds, " seeds"));
    }
    high = std::min(2 * high, kMaxSeeds);
  }
  int low = high == 2 ? 1 : 2;  // not enough; one seed never is
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

absl::StatusOr<double> DetectableDifference(double deviation, int seeds, double alpha,
                                            double power) {
  RETURN_IF_ERROR(Check(deviation, alpha, power));
  if (seeds < 2 || seeds > kMaxSeeds) {
    return absl::InvalidArgumentError(
        absl::StrCat("the number of seeds is ", seeds, ", but must be in [2, ", kMaxSeeds, "]"));
  }
  const auto found = [&](double ratio) { return PowerOf(seeds, ratio, alpha) >= power; };
  double low = 0, high = 1;
  while (!found(high)) high *= 2;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (found(middle) ? high : low) = middle;
  }
  return high * deviation;
}

absl::StatusOr<double> AreaUnderCurve(absl::Span<const std::pair<int64_t, double>> points) {
  if (points.empty()) return absl::InvalidArgumentError("a curve without points has no area");
  if (points.size() == 1) return points[0].second;
  double area = 0;
  for (size_t i = 1; i < points.size(); ++i) {
    const auto& [before, from] = points[i - 1];
    const auto& [step, to] = points[i];
    if (step <= before) {
      return absl::InvalidArgumentError(
          absl::StrCat("steps of a curve must ascend: ", before, ", ", step));
    }
    area += static_cast<double>(step - before) * (from + to) / 2;
  }
  return area / static_cast<double>(points.back().first - points.front().first);
}

}  // namespace tritonrl
