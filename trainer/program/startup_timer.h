// Time from the launch of a program to its first step, by phase.
#ifndef TRITONRL_TRAINER_PROGRAM_STARTUP_TIMER_H_
#define TRITONRL_TRAINER_PROGRAM_STARTUP_TIMER_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace tritonrl {

// Each phase begins where the one before it ends.
class StartupTimer {
 public:
  // Counts from the start of this process, so that the time before this call (shared libraries,
  // flags, joining the other ranks) is the first phase, "launch". If the system does not tell when
  // the process started, counts from now.
  StartupTimer();
  // With another clock, for a process that started `age` ago.
  StartupTimer(absl::Duration age, std::function<absl::Time()> now);

  // The time since the last phase ended belongs to phase `what`; equal names add up.
  void EndPhase(const std::string& what);

  // "first step begins 4.2 s after the launch: launch 0.5 s, weights 2.1 s, ...", the phases in
  // the order in which they ended first; "the rest" are all phases under 0.05 s.
  std::string Summary() const;

 private:
  std::function<absl::Time()> now_;
  absl::Time last_;
  std::vector<std::pair<std::string, absl::Duration>> parts_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_PROGRAM_STARTUP_TIMER_H_
