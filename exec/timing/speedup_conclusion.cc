#include "exec/timing/speedup_conclusion.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "exec/device_backend.h"

namespace tritonrl {
namespace {

// A GPU's cache may keep what was written last, and a write test does not reach the full rate: the
// floor of measured times is made lower by these, so that no honest kernel is below it.
constexpr double kMeasuredCacheBytes = 64 << 20;
constexpr double kMeasuredRateMargin = 1.5;

// Seconds that no forward of the task can be faster than on the GPU that `timing` is of: memory
// traffic, or one operation for each element of the outputs. More operations cannot be asked for: a
// matrix product of a diagonal matrix is a scaling of rows, and so on for any structure of inputs.
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
    if (!timing.has_value() || timing->kind == TimingResult::Kind::kCandidateEnded) {
      return SetOutcome(Outcome::BAD_RESULT, "it ended before its timed rounds were over",
                        result->mutable_outcome());
    }
    if (timing->kind != TimingResult::Kind::kTimed) {
      return SetOutcome(Outcome::INTERNAL_ERROR, timing->text, result->mutable_outcome());
    }
    result->set_reference_seconds(timing->reference.event);
    result->set_candidate_seconds(timing->candidate.event);
    result->set_outside_seconds(OutsideSeconds(timing->reference, timing->candidate));
    DescribeTiming(*timing, result->mutable_timing());
    floor = MeasuredFloor(reference_result, *timing);
    if (!IsBelievable(result->candidate_seconds(), result->outside_seconds(),
                      timing->spin_seconds)) {
      return SetOutcome(
          Outcome::INCONCLUSIVE,
          absl::StrFormat("its process reports %.1f us for one forward, but by the clock "
                          "outside one takes %.1f us",
                          1e6 * result->candidate_seconds(), 1e6 * result->outside_seconds()),
          result->mutable_outcome());
    }
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
