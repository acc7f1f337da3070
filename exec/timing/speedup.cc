#include "exec/timing/speedup.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/strings/str_format.h"
#include "base/random.h"
#include "exec/device_backend.h"
#include "exec/reference/reference_runner.h"
#include "exec/timing/timing_result.h"

namespace tritonrl {
namespace {

constexpr int kResamples = 1000;
constexpr double kOutside = 0.025;         // share of resamples beyond each end
constexpr double kNormal = 1.959963985;    // 97.5 % point of the standard normal distribution
constexpr uint64_t kKey = 0x5eedb00757a9;  // seed of the resampling: any fixed number
constexpr double kRelativeError = 0.01;
constexpr double kClockSeconds = 0.5e-6;

std::vector<double> Ratios(const std::vector<TimedBlock>& blocks) {
  std::vector<double> ratios;
  for (const TimedBlock& block : blocks) ratios.push_back(block.reference / block.candidate);
  return ratios;
}

// The 97.5 % point of Student's t with `freedom` >= 1 degrees of freedom. From 3 degrees on: the
// expansion about the normal point (Abramowitz and Stegun 26.7.5), which is accurate to 0.3 %
// there.
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

// Margins that keep the floor of measured times below any honest kernel: a GPU's cache may hold the
// bytes written last, and the write test does not reach the full memory bandwidth.
constexpr double kMeasuredCacheBytes = 64 << 20;
constexpr double kMeasuredRateMargin = 1.5;

// Lower bound in seconds on any forward of the task on the GPU of `timing`: memory traffic, or one
// operation for each output element. A bound on more operations would be wrong, because structured
// inputs can need fewer: a GEMM with a diagonal matrix is only a scaling of rows.
double MeasuredFloor(const ReferenceResult& reference_result, const TimingResult& timing) {
  double floor = 0;
  const double bytes = reference_result.MinBytesMoved() - kMeasuredCacheBytes;
  if (timing.bytes_per_second > 0 && bytes > 0) {
    floor = bytes / (kMeasuredRateMargin * timing.bytes_per_second);
  }
  if (timing.operations_per_second > 0) {
    floor = std::max(floor, reference_result.MinOperations() / timing.operations_per_second);
  }
  return floor;
}

void DescribeTiming(const TimingResult& timing, MeasuredTiming* description) {
  description->set_speedup_low(timing.speedup.low);
  description->set_speedup_high(timing.speedup.high);
  if (timing.paper_speedup.has_value()) description->set_paper_speedup(*timing.paper_speedup);
  description->mutable_block_ratios()->Add(timing.ratios.begin(), timing.ratios.end());
  for (const GpuState& state : timing.gpu) {
    if (state.other_programs > 0) description->set_gpu_shared(true);
    if (state.throttled) description->set_gpu_throttled(true);
    if (state.sm_mhz <= 0) continue;
    const bool first = !description->has_sm_mhz_low();
    description->set_sm_mhz_low(first ? state.sm_mhz
                                      : std::min(description->sm_mhz_low(), state.sm_mhz));
    description->set_sm_mhz_high(std::max(description->sm_mhz_high(), state.sm_mhz));
  }
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

void ConcludeSpeedup(const ReferenceResult& reference_result,
                     const std::optional<TimingResult>& timing, ExecResult* result) {
  double floor = 0;
  if (reference_result.run.modelled()) {
    if (reference_result.run.has_reference_seconds()) {
      result->set_reference_seconds(reference_result.run.reference_seconds());
    }
    if (reference_result.bytes_per_second > 0)
      floor = reference_result.MinBytesMoved() / reference_result.bytes_per_second;
  } else {
    if (!timing.has_value() || timing->kind != TimingResult::Kind::kTimed) {
      return SetOutcome(Outcome::INTERNAL_ERROR,
                        timing.has_value() ? timing->text : "no call was timed",
                        result->mutable_outcome());
    }
    result->set_reference_seconds(timing->reference_seconds);
    result->set_candidate_seconds(timing->candidate_seconds);
    DescribeTiming(*timing, result->mutable_timing());
    if (timing->paper_rules) {
      result->set_speedup(timing->paper_speedup.value_or(0));
      return;
    }
    floor = MeasuredFloor(reference_result, *timing);
  }
  result->set_floor_seconds(floor);
  if (!result->has_candidate_seconds()) return;
  const double seconds = result->candidate_seconds();
  if (!(seconds >= floor) || !std::isfinite(seconds)) {
    return SetOutcome(
        Outcome::INCONCLUSIVE,
        absl::StrFormat("its time of %.3g us is below the %.3g us that reading the inputs "
                        "and writing the outputs once takes at least",
                        1e6 * seconds, 1e6 * floor),
        result->mutable_outcome());
  }
  if (timing.has_value()) {
    result->set_speedup(timing->speedup.speedup);
  } else if (seconds > 0) {
    result->set_speedup(result->reference_seconds() / seconds);
  }
}

}  // namespace tritonrl
