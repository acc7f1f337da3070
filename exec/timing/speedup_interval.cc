#include "exec/timing/speedup_interval.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/random.h"

namespace tritonrl {
namespace {

constexpr int kResamples = 1000;
constexpr double kOutside = 0.025;         // share of resamples beyond each end
constexpr uint64_t kKey = 0x5eedb00757a9;  // of the resampling: any fixed number
constexpr double kRelativeError = 0.01;
constexpr double kClockSeconds = 0.5e-6;

std::vector<double> Ratios(const std::vector<TimedBlock>& blocks) {
  std::vector<double> ratios;
  for (const TimedBlock& block : blocks) ratios.push_back(block.reference / block.candidate);
  return ratios;
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
  Philox random(kKey);
  std::vector<double> medians(kResamples), drawn(ratios.size());
  for (double& median : medians) {
    for (double& value : drawn) value = ratios[random.Below(ratios.size())];
    median = Median(drawn);
  }
  std::sort(medians.begin(), medians.end());
  const size_t first = static_cast<size_t>(kOutside * kResamples);
  return {
      .speedup = Median(ratios), .low = medians[first], .high = medians[kResamples - 1 - first]};
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
