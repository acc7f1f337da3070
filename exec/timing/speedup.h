// The speedup of a candidate with its interval, from many short blocks of timed calls, and whether
// it is believed.
#ifndef TRITONRL_EXEC_TIMING_SPEEDUP_H_
#define TRITONRL_EXEC_TIMING_SPEEDUP_H_

#include <optional>
#include <vector>

#include "exec/messages.pb.h"

namespace tritonrl {

struct ReferenceResult;
struct TimingResult;

// Seconds that one call took on either side in one block; both were measured next to each other,
// so that clocks and neighbours were about the same for both.
struct TimedBlock {
  double reference = 0;
  double candidate = 0;
};

struct SpeedupInterval {
  double speedup = 0;  // median over the blocks of reference / candidate
  double low = 0;
  double high = 0;

  // Half of its width, relative to the speedup.
  double HalfWidth() const { return speedup > 0 ? (high - low) / (2 * speedup) : 1; }
};

// The median of the blocks' ratios with its 95 % interval by the bootstrap (Efron 1979): the middle
// 95 % of the medians of 1,000 resamples of the blocks, and either end moved out by the factor
// t_{n-1, 0.975} sqrt(n / (n - 1)) / 1.96 of n blocks, without which such an interval is too narrow
// when n is small (after Hesterberg, The American Statistician 69, 2015, 3.2.4; the truth lies
// between the least and the greatest ratio of 3 blocks in 75 % of all cases only).
// The same blocks always give the same interval. All zeros without a block, 0 to infinity of a
// single one; every time must be above 0.
SpeedupInterval EstimateSpeedup(const std::vector<TimedBlock>& blocks);

// The interval with what repeating blocks cannot show: two processes that run the same program
// differ by where their memory lies (a transposed convolution in 3D: by 0.95 %, in two pairs of
// processes; most others by less than 0.2 %) and by the resolution of a GPU's event clock. Each end
// moves out by 1 % plus half a microsecond's share of the shorter side's time.
SpeedupInterval WithSystematicError(const SpeedupInterval& interval,
                                    const std::vector<TimedBlock>& blocks);

// The median, of an even number the mean of the middle two; 0 of nothing.
double Median(std::vector<double> values);

// Fills in times and speedup of a candidate that was right. `timing` is what the rounds on a GPU
// gave; modelled times are in `reference_result` and `result` already. Outcome::INCONCLUSIVE where
// the candidate's time contradicts the clock outside, or is below what the task takes at least.
void ConcludeSpeedup(const ReferenceResult& reference_result,
                     const std::optional<TimingResult>& timing, ExecResult* result);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TIMING_SPEEDUP_H_
