// What timing on a GPU measured, and readers of the reference process' answers about it.
#ifndef TRITONRL_EXEC_TIMING_TIMING_RESULT_H_
#define TRITONRL_EXEC_TIMING_TIMING_RESULT_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "exec/timing/speedup.h"

namespace tritonrl {

// State of the GPU before or after a round, as the reference process reads it through NVML.
struct GpuState {
  double sm_mhz = 0;       // clock of the multiprocessors
  int other_programs = 0;  // programs other than ours that hold GPU memory
  bool throttled = false;  // by power or heat
};

// Appends the states that a reference's answer tells in its member "gpu".
void AddGpuStates(const nlohmann::json& answer, std::vector<GpuState>* states);

// The value of member `name` if it is a finite number above 0; else 0.
double PositiveNumber(const nlohmann::json& object, const char* name);

struct TimingResult {
  enum class Kind {
    kTimed,
    kCandidateEnded,  // a timed call of the candidate failed
    kWrongOutput,     // the output of a timed call is wrong
    kTimerFailed,     // the reference's side gave no answer: an infrastructure error
  };
  Kind kind = Kind::kTimed;
  std::string text;                                     // cause, if kTimerFailed
  double reference_seconds = 0, candidate_seconds = 0;  // of one forward: medians over all calls
  SpeedupInterval speedup;
  std::vector<double> ratios;           // of each block: reference / candidate
  std::optional<double> paper_speedup;  // ratio of the means of ten plain calls each
  // RULES_PAPER: only the ten calls were timed. The times of one forward are their means.
  bool paper_rules = false;
  double bytes_per_second = 0;       // measured write bandwidth of the GPU
  double operations_per_second = 0;  // upper bound of simple operations on this kind of GPU
  std::vector<GpuState> gpu;         // before and after each round of the reference
  // Seconds spent on each part: preparation, wait for the GPU, rounds.
  double ready_seconds = 0, wait_seconds = 0, round_seconds = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TIMING_TIMING_RESULT_H_
