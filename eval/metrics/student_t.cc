#include "eval/metrics/student_t.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tritonrl {
namespace {

// The chance that |T| > sqrt(freedom) tan(angle): Abramowitz and Stegun 26.7.3 and 26.7.4.
double OutsideAngle(double angle, int freedom) {
  const double sine = std::sin(angle), cosine = std::cos(angle);
  const bool odd = freedom % 2 == 1;
  double term = odd ? cosine : 1, sum = freedom == 1 ? 0 : term;
  for (int i = odd ? 2 : 1; i <= freedom - 3; i += 2) {
    term *= cosine * cosine * i / (i + 1);
    sum += term;
  }
  const double inside = odd ? 2 / std::numbers::pi * (angle + sine * sum) : sine * sum;
  return std::clamp(1 - inside, 0.0, 1.0);
}

// The distribution function of the standard normal distribution.
double Normal(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

}  // namespace

double StudentTOutside(double t, int freedom) {
  return OutsideAngle(std::atan(t / std::sqrt(freedom)), freedom);
}

double StudentTCritical(double outside, int freedom) {
  double low = 0, high = std::numbers::pi / 2;  // angles
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (OutsideAngle(middle, freedom) > outside ? low : high) = middle;
  }
  return std::sqrt(freedom) * std::tan((low + high) / 2);
}

double ShiftedStudentTOutside(double t, int freedom, double shift) {
  // T = (Z + shift) / u, where freedom u^2 has the chi-square distribution: the chance for a given
  // u, integrated over u by Simpson's rule within ten standard deviations.
  constexpr int kSteps = 10000;  // even
  const double half = freedom / 2.0, width = 10 / std::sqrt(2.0 * freedom);
  const double first = std::max(0.0, 1 - width), step = (1 + width - first) / kSteps;
  const double log_factor = std::numbers::ln2 + half * std::log(half) - std::lgamma(half);
  double sum = 0;
  for (int i = 0; i <= kSteps; ++i) {
    const double u = first + i * step;
    // At u = 0 the density is 0, but not with 1 degree of freedom, where the power of u is 1.
    const double log_u = std::log(std::max(u, 1e-300));
    const double density = std::exp(log_factor + (freedom - 1) * log_u - half * u * u);
    const double weight = i == 0 || i == kSteps ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * density * (Normal(shift - t * u) + Normal(-shift - t * u));
  }
  return std::min(1.0, sum * step / 3);
}

}  // namespace tritonrl
