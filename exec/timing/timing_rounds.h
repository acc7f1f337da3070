// Interleaved timing on a GPU: reference and candidate run rounds of calls in turn, each in its own
// process, and the supervisor compares their times with its own clock.
#ifndef TRITONRL_EXEC_TIMING_TIMING_ROUNDS_H_
#define TRITONRL_EXEC_TIMING_TIMING_ROUNDS_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "exec/reference/reference_runner.h"
#include "exec/timing/speedup.h"
#include "exec/workers/job_dialogue.h"

namespace tritonrl {

// State of the GPU around a round, read through NVML by the reference process.
struct GpuState {
  double sm_mhz = 0;       // clock of its multiprocessors
  int other_programs = 0;  // programs beside reference and candidate that hold GPU memory
  bool throttled = false;  // by power or heat
};

// Times of one round: `calls` forwards one after the other.
struct TimedRound {
  int calls = 0;
  double outside_seconds = 0;         // from the order to the answer, by the supervisor's clock
  std::vector<double> event_seconds;  // of each call, by CUDA events in the process itself
  std::vector<GpuState> gpu;          // before and after; empty where it cannot be read
};

struct RoundRequest {
  int calls = 1;
  int trial = 0;
  int checked = 0;  // number of the call on the trial's own inputs
  double spin_seconds = 0;
  bool plain = false;  // as the paper's figure is taken: no waiting, no flush of the cache
};

// Orders one round by `ask` and reads its times and how long it took outside. False when the answer
// is not what was asked for; `ended` says whether there was none.
bool RunTimedRound(const RoundRequest& order,
                   const std::function<std::optional<std::string>(const std::string&)>& ask,
                   TimedRound* round, bool* ended);

// A job's message as an object with the one member `name`: its value; null if it is anything else.
nlohmann::json Member(const std::optional<std::string>& message, const char* name);

// A member that is a finite number above 0; else 0.
double PositiveNumber(const nlohmann::json& object, const char* name);

// One round of a block: whose, and n or 2n calls.
struct BlockRound {
  bool is_candidate = false;
  int factor = 1;
};

// The rounds of a block: n calls of the reference, n and 2n of the candidate, 2n of the reference,
// and these four backwards. A steady drift, such as clocks that fall under load, is thus the same
// for both sides. The GPU switches processes before the second, fourth, sixth and last round, which
// takes outside time: each side has long and short rounds with and without a switch.
const std::vector<BlockRound>& BlockOrder();

// Seconds of one forward, estimated from the rounds of one process.
struct TimePerCall {
  double event = 0;    // median of all events
  double outside = 0;  // what one call more costs in outside time, flush of the cache included
};

// `rounds` are of n and of 2n calls. The outside time of one is the difference between the shortest
// round of either kind, divided by n: what a round costs once drops out, and so does what a busy
// host adds to some of them. The event time is the median of all.
TimePerCall Summarize(const std::vector<TimedRound>& rounds);

// Seconds of one forward of the candidate by the outside clock. The cost of a call beyond its
// events is taken from the reference, whose process is trusted and does the same around each call.
double OutsideSeconds(const TimePerCall& reference, const TimePerCall& candidate);

// False when the candidate's own time is faster than the outside clock allows, by more than 20
// microseconds and by more than half. Each call began with a wait of `spin_seconds`, which either
// process counts out by its own measure of the GPU's clock: a tenth of it is tolerated as well.
bool IsBelievable(double event_seconds, double outside_seconds, double spin_seconds);

struct TimingResult {
  enum class Kind {
    kTimed,
    kCandidateEnded,  // its process ended before it was done
    kBadMessage,      // it answered something else than was asked
    kWrongOutput,     // `check_output` did not accept the output of a timed round
    kTimerFailed,     // the reference's side gave no answer: an infrastructure error
  };
  Kind kind = Kind::kTimed;
  std::string text;  // what went wrong
  TimePerCall reference, candidate;
  SpeedupInterval speedup;
  std::vector<double> ratios;           // of each block: reference / candidate
  std::optional<double> paper_speedup;  // ratio of the means of ten plain calls each
  double bytes_per_second = 0;          // at which the GPU writes memory
  double spin_seconds = 0;              // wait before each call
  double operations_per_second = 0;     // no GPU of its kind does more simple operations
  std::vector<GpuState> gpu;            // over all rounds
  // Where the time went: getting ready, waiting for the GPU, rounds, loading trials, judging
  // outputs.
  double ready_seconds = 0, wait_seconds = 0, round_seconds = 0, load_seconds = 0,
         check_seconds = 0;
};

// Judges the output of a timed round on a trial's inputs; false ends the timing.
using CheckOutput = std::function<bool(int trial, const std::string& output_layout)>;

// The two sides that are timed in turn, and what they need.
struct TimingSides {
  // An order to the reference's side and its answer; an error is an infrastructure error.
  std::function<absl::StatusOr<std::string>(const std::string& order)> reference;
  JobDialogue* candidate = nullptr;
  // Puts a trial's inputs where the candidate will look for them.
  std::function<absl::Status(int trial)> provide;
  CheckOutput check_output;
  // Returns when nothing else uses the GPU; false when that took too long, which is an
  // infrastructure error.
  std::function<bool()> alone;
};

// Each side first makes the ten calls of the paper's figure. Blocks of rounds (BlockOrder) follow
// until the interval of the speedup is narrow or the time budget is used.
// Calls `alone` once both sides are ready, begins on the reference's side then, and orders rounds
// from the reference and from the candidate, which has just been told to go on after its last call.
// Of each round one call, which nobody could foresee, is on a trial's own inputs; its output is
// judged after the first round and after a random choice of the others: all where outputs are
// small, a quarter where they are large. Both sides are told to end when it is over.
TimingResult MeasureInterleaved(const ExecRequest& request, const ReferenceResult& reference_result,
                                const TimingSides& sides);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TIMING_TIMING_ROUNDS_H_
