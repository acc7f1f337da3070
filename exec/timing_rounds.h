// Timing on a GPU: reference and candidate take turns, each in its own process, and the supervisor
// holds a clock of its own beside theirs.
#ifndef TRITONRL_EXEC_TIMING_ROUNDS_H_
#define TRITONRL_EXEC_TIMING_ROUNDS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "exec/job_dialogue.h"
#include "exec/oracle.h"

namespace tritonrl {

// One round: `calls` forwards one after the other.
struct TimedRound {
  int calls = 0;
  double outside_seconds = 0;         // from the order to the answer, by the supervisor's clock
  std::vector<double> event_seconds;  // of each call, by CUDA events in the process itself
};

// What rounds of one process say about one forward, in seconds.
struct TimePerCall {
  double event = 0;    // mean of all events
  double outside = 0;  // what one call more costs in outside time, flush of the cache included
};

// `rounds` hold pairs of n and 2n calls (in either order within a pair): the outside time is the
// median over the pairs of the difference divided by n, so that what a round costs once drops out.
TimePerCall Summarize(const std::vector<TimedRound>& rounds);

// One forward of the candidate by the outside clock: what a call costs beyond its events is taken
// from the reference, whose process is trusted and does the same around each call.
double OutsideSeconds(const TimePerCall& reference, const TimePerCall& candidate);

// False when the candidate's own time is faster than the outside clock allows, by more than 20
// microseconds and by more than half.
bool IsBelievable(double event_seconds, double outside_seconds);

struct TimingResult {
  enum class Kind {
    kTimed,
    kCandidateEnded,  // its process ended before it was done
    kBadMessage,      // it answered something else than was asked
    kWrongOutput,     // `judge` did not accept the output of a timed round
    kTimerFailed,     // the reference's process ended: a fault of ours
  };
  Kind kind = Kind::kTimed;
  std::string text;  // what went wrong
  TimePerCall reference, candidate;
  double bytes_per_second = 0;  // at which the GPU writes memory
};

// Judges the output of a timed round on a trial's inputs; false ends the timing.
using JudgeOutput = std::function<bool(int trial, const std::string& output_layout)>;

// Starts a process for the reference on `oracle_pool` and orders rounds A B B A from it (A) and
// from `candidate` (B), which has just been told to go on after its last call. Both are told to end
// when it is over.
TimingResult TimeInTurns(const JobContext& context, const OracleResult& oracle,
                         WorkerPool* oracle_pool, const ExecLimits& limits, absl::Time deadline,
                         JobDialogue* candidate, const JudgeOutput& judge);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TIMING_ROUNDS_H_
