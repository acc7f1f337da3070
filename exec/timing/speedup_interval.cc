#include "exec/timing/speedup_interval.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/random.h"

namespace tritonrl {
namespace {

constexpr int kResamples = 1000;
constexpr double kOutside = 0.025;         // share of resamples beyond each end
constexpr double kNormal = 1.959963985;    // beyond which as much of a normal distribution lies
constexpr uint64_t kKey = 0x5eedb00757a9;  // of the resampling: any fixed number
constexpr double kRelativeError = 0.01;
constexpr double kClockSeconds = 0.5e-6;

std::vector<double> Ratios(const std::vector<TimedBlock>& blocks) {
  std::vector<double> ratios;
  for (const TimedBlock& block : blocks) ratios.push_back(block.reference / block.candidate);
  return ratios;
}

// The 97.5 % point of Student's t with `freedom` >= 1 degrees of freedom: the expansion about the
// normal one (Abramowitz and Stegun 26.7.5) from 3 on, where it is right to 0.3 %, a number below.
double StudentT(double freedom) {
  if (freedom == 1) return 12.7062047362;
  if (freedom == 2) return 4.3026527297;
  const double z = kNormal, z2 = z * z;
  const double g1 = (z2 + 1) * z / 4;
  const double g2 = ((5 * z2 + 16) * z2 + 3) * z / 96;
  const double g3 = (((3 * z2 + 19) * z2 + 17) * z2 - 15) * z / 384;
  const double g4 = ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) * z / 92160;
  return z + (g1 + (g2 + (g3 + g4 / freedom) / freedom) / freedom) / freedom;
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (*std::max_element(values.begin(), values.begin() + middle) + upper) / 2;
}

SpeedupInterval EstimateSpeedup(const std::vector<TimedBlock>& blocks) {
  if (blocks.empty()) return {};
  const std::vector<double> ratios = Ratios(blocks);
  const double count = static_cast<double>(ratios.size()), middle = Median(ratios);
  if (count == 1) {
    return {.speedup = middle, .low = 0, .high = std::numeric_limits<double>::infinity()};
  }
  Philox random(kKey);
  std::vector<double> medians(kResamples), drawn(ratios.size());
  for (double& median : medians) {
    for (double& value : drawn) value = ratios[random.Below(ratios.size())];
    median = Median(drawn);
  }
  std::sort(medians.begin(), medians.end());
  const size_t first = static_cast<size_t>(kOutside * kResamples);
  const double wider = StudentT(count - 1) * std::sqrt(count / (count - 1)) / kNormal;
  return {.speedup = middle,
          .low = std::max(0.0, middle + wider * (medians[first] - middle)),
          .high = middle + wider * (medians[kResamples - 1 - first] - middle)};
}

SpeedupInterval WithSystematicError(const SpeedupInterval& interval,
                                    const std::vector<TimedBlock>& blocks) {
  if (blocks.empty()) return interval;
  std::vector<double> shorter;
  for (const TimedBlock& block : blocks) {
    shorter.push_back(std::min(block.reference, block.candidate));
  }
  const double error = kRelativeError + kClockSeconds / Median(shorter);
  return {.speedup = interval.speedup,
          .low = interval.low / (1 + error),
          .high = interval.high * (1 + error)};
}

}  // namespace tritonrl
