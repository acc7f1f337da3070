// One round of timed calls in one process: the order, and what is read from the answer.
#ifndef TRITONRL_EXEC_TIMING_TIMED_ROUND_H_
#define TRITONRL_EXEC_TIMING_TIMED_ROUND_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tritonrl {

// What the timing process of the reference saw of the GPU around a round (by NVML).
struct GpuState {
  double sm_mhz = 0;       // clock of its multiprocessors
  int other_programs = 0;  // that hold memory on it, beside reference and candidate
  bool throttled = false;  // by power or heat
};

// One round: `calls` forwards one after the other.
struct TimedRound {
  int calls = 0;
  double outside_seconds = 0;         // from the order to the answer, by the supervisor's clock
  std::vector<double> event_seconds;  // of each call, by CUDA events in the process itself
  std::vector<GpuState> gpu;          // before and after; empty where it cannot be read
};

// What a round is to be like.
struct RoundOrder {
  int calls = 1;
  int trial = 0;
  int checked = 0;  // number of the call on the trial's own inputs
  double spin_seconds = 0;
  bool plain = false;  // as the paper's figure is taken: no waiting, no flush of the cache
};

// Orders one round by `ask` and reads its times and how long it took outside. False when the answer
// is not what was asked for; `ended` says whether there was none.
bool OrderRound(const RoundOrder& order,
                const std::function<std::optional<std::string>(const std::string&)>& ask,
                TimedRound* round, bool* ended);

// A job's message as an object with the one member `name`: its value; null if it is anything else.
nlohmann::json Member(const std::optional<std::string>& message, const char* name);

// A member that is a finite number above 0; else 0.
double PositiveNumber(const nlohmann::json& object, const char* name);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TIMING_TIMED_ROUND_H_
