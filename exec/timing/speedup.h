// Estimates a candidate's speedup and its interval from many short blocks of timed calls, and
// rejects times that are not credible.
#ifndef TRITONRL_EXEC_TIMING_SPEEDUP_H_
#define TRITONRL_EXEC_TIMING_SPEEDUP_H_

#include <optional>
#include <vector>

#include "exec/messages.pb.h"

namespace tritonrl {

struct ReferenceResult;
struct TimingResult;

// Seconds of one call on each side in one block. Both sides are measured close together in time, so
// that GPU clocks and other load are about the same for both.
struct TimedBlock {
  double reference = 0;
  double candidate = 0;
};

struct SpeedupInterval {
  double speedup = 0;  // median over the blocks of reference / candidate
  double low = 0;
  double high = 0;

  // Half the width of the interval, relative to the speedup.
  double HalfWidth() const { return speedup > 0 ? (high - low) / (2 * speedup) : 1; }
};

// The median of the blocks' ratios with its 95 % interval by the bootstrap (Efron 1979): the middle
// 95 % of the medians of 1,000 resamples of the blocks. For n blocks, the distance of each end from
// the median is multiplied by t_{n-1, 0.975} sqrt(n / (n - 1)) / 1.96, because a bootstrap interval
// is too narrow for small n (after Hesterberg, The American Statistician 69, 2015, 3.2.4; the true
// ratio is between the smallest and the largest ratio of 3 blocks in only 75 % of all cases).
// Deterministic. All zeros without blocks; 0 to infinity for one block. All times must be above 0.
SpeedupInterval EstimateSpeedup(const std::vector<TimedBlock>& blocks);

// Widens the interval by errors that repeated blocks cannot show. Two processes that run the same
// program differ by the addresses of their memory (a 3D transposed convolution by 0.95 % in two
// pairs of processes, most other programs by less than 0.2 %) and by the resolution of a GPU's
// event clock. Each end moves out by 1 % plus the ratio of 0.5 us to the shorter side's time.
SpeedupInterval WithSystematicError(const SpeedupInterval& interval,
                                    const std::vector<TimedBlock>& blocks);

// The median; for an even number of values the mean of the middle two, for none 0.
double Median(std::vector<double> values);

// Sets the times and the speedup of a correct candidate. `timing` is the result of the rounds on a
// GPU, without which the outcome is an infrastructure error; modelled times are already in
// `reference_result` and `result`. Outcome::INCONCLUSIVE if the candidate's time is below the
// task's lower bound. Measured by the paper's rules, the times and the speedup are those of the ten
// calls, unchecked.
void ConcludeSpeedup(const ReferenceResult& reference_result,
                     const std::optional<TimingResult>& timing, ExecResult* result);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TIMING_SPEEDUP_H_
