// Interleaved timing on a GPU: reference and candidate take turns at rounds of calls, each in its
// own process, and the supervisor compares their times with its own clock.
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

// State of the GPU before or after a round, as the reference process reads it through NVML.
struct GpuState {
  double sm_mhz = 0;       // clock of the multiprocessors
  int other_programs = 0;  // programs other than reference and candidate that hold GPU memory
  bool throttled = false;  // by power or heat
};

// Times of one round, which is a sequence of `calls` forwards. "Outside" times are by the
// supervisor's clock.
struct TimedRound {
  int calls = 0;
  double outside_seconds = 0;         // from the order to the answer
  std::vector<double> event_seconds;  // of each call, by CUDA events in the process itself
  std::vector<GpuState> gpu;          // before and after the round; empty if unreadable
};

struct RoundRequest {
  int calls = 1;
  int trial = 0;
  int checked = 0;          // index of the call that runs on the trial's own inputs
  double spin_seconds = 0;  // wait on the GPU before each call
  bool plain = false;       // as for the paper's figure: no wait, no cache flush
};

// Orders one round through `ask`, and reads its event times and the outside time. False if the
// answer is malformed or missing; `ended` is set to whether it is missing.
bool RunTimedRound(const RoundRequest& order,
                   const std::function<std::optional<std::string>(const std::string&)>& ask,
                   TimedRound* round, bool* ended);

// Appends the states that a reference's answer tells in its member "gpu".
void AddGpuStates(const nlohmann::json& answer, std::vector<GpuState>* states);

// The value of `name` in a job's message if that is an object with no other member; else null.
nlohmann::json Member(const std::optional<std::string>& message, const char* name);

// The value of member `name` if it is a finite number above 0; else 0.
double PositiveNumber(const nlohmann::json& object, const char* name);

// One round of a block: its side, and its number of calls, n (factor 1) or 2n (factor 2).
struct BlockRound {
  bool is_candidate = false;
  int factor = 1;
};

// The rounds of a block: n calls of the reference, n and 2n of the candidate, 2n of the reference,
// then the same four in reverse order. So a steady drift, such as clocks that fall under load,
// affects both sides equally. The GPU switches processes before the second, fourth, sixth and last
// round, which takes outside time: each side has long and short rounds with and without a switch.
const std::vector<BlockRound>& BlockOrder();

// Seconds of one forward, estimated from the rounds of one process.
struct TimePerCall {
  double event = 0;    // median over all calls
  double outside = 0;  // outside time of one additional call, including its cache flush
};

// Estimates the time per call from rounds of n and of 2n calls. The outside time is the shortest
// round of 2n calls minus the shortest of n calls, divided by n: the fixed cost of a round cancels
// out, and the shortest rounds leave out delays by a busy host. The event time is the median of all
// calls.
TimePerCall Summarize(const std::vector<TimedRound>& rounds);

// Seconds of one forward of the candidate by the supervisor's clock. Subtracts the cost of a call
// beyond its events as measured on the reference, whose process is trusted and does the same work
// around each call.
double OutsideSeconds(const TimePerCall& reference, const TimePerCall& candidate);

// Returns false if event_seconds is less than half of outside_seconds and the difference exceeds 20
// microseconds plus a tenth of spin_seconds. That tenth covers the error of the wait before each
// call, whose length each process takes from its own measurement of the GPU's clock.
bool IsBelievable(double event_seconds, double outside_seconds, double spin_seconds);

struct TimingResult {
  enum class Kind {
    kTimed,
    kCandidateEnded,  // the candidate's process ended before its rounds were over
    kBadMessage,      // the candidate sent a malformed answer
    kWrongOutput,     // `check_output` rejected the output of a timed round
    kTimerFailed,     // the reference's side gave no answer: an infrastructure error
  };
  Kind kind = Kind::kTimed;
  std::string text;  // cause, unless kTimed
  TimePerCall reference, candidate;
  SpeedupInterval speedup;
  std::vector<double> ratios;           // of each block: reference / candidate
  std::optional<double> paper_speedup;  // ratio of the means of ten plain calls each
  // RULES_PAPER: only the ten calls were timed. The times of one forward are their means.
  bool paper_rules = false;
  double bytes_per_second = 0;       // measured write bandwidth of the GPU
  double spin_seconds = 0;           // wait before each call
  double operations_per_second = 0;  // upper bound of simple operations on this kind of GPU
  std::vector<GpuState> gpu;         // before and after each round of the reference
  // Seconds spent on each part: preparation, wait for the GPU, rounds, loading of trials, output
  // checks.
  double ready_seconds = 0, wait_seconds = 0, round_seconds = 0, load_seconds = 0,
         check_seconds = 0;
};

// Checks the output of a timed round on a trial's inputs; false ends the timing.
using CheckOutput = std::function<bool(int trial, const std::string& output_layout)>;

// The reference and the candidate, and the supervisor's actions for them during timing.
struct TimingSides {
  // Sends an order to the reference's side and returns its answer; an error is an infrastructure
  // error.
  std::function<absl::StatusOr<std::string>(const std::string& order)> reference;
  JobDialogue* candidate = nullptr;
  // Puts a trial's inputs into the candidate's input buffer.
  std::function<absl::Status(int trial)> provide;
  CheckOutput check_output;
  // Waits until no other request uses the GPU. False on a timeout, which is an infrastructure
  // error.
  std::function<bool()> alone;
};

// Times reference and candidate. When both sides are ready it calls `alone`, then starts the
// reference's side. Each side first makes the ten calls of the paper's figure; blocks of rounds
// (BlockOrder) follow until the interval of the speedup is narrow or the time budget is used. One
// call of each round, drawn at random so that the candidate cannot foresee it, runs on the trial's
// own inputs. Its output is checked after the candidate's first round and after a random share of
// the others: all if outputs are small, a quarter if they are large. Tells both sides to end when
// the timing is over. By the paper's rules (RULES_PAPER) the ten calls are all that is timed.
TimingResult MeasureInterleaved(const ExecRequest& request, const ReferenceResult& reference_result,
                                const TimingSides& sides);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TIMING_TIMING_ROUNDS_H_
