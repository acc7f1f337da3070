// How long a program takes from its launch to its first step, and what for.
#ifndef TRITONRL_TRAINER_PROGRAM_STARTUP_TIMER_H_
#define TRITONRL_TRAINER_PROGRAM_STARTUP_TIMER_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace tritonrl {

// The parts of a start, each of which ends where the next begins.
class StartupTimer {
 public:
  // Counts from when the system started this process, so that what came before (shared libraries,
  // flags, joining the other ranks) is the first part, "launch". Where the system does not say
  // when that was, from now on.
  StartupTimer();
  // The same with another clock, by which the process was started `age` ago.
  StartupTimer(absl::Duration age, std::function<absl::Time()> now);

  // What has passed since the last part ended was `what`; a name said again is added to.
  void EndPhase(const std::string& what);

  // "first step begins 4.2 s after the launch: launch 0.5 s, weights 2.1 s, ...", the parts in the
  // order of their first ends; those under 0.05 s together are "the rest".
  std::string Summary() const;

 private:
  std::function<absl::Time()> now_;
  absl::Time last_;
  std::vector<std::pair<std::string, absl::Duration>> parts_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_PROGRAM_STARTUP_TIMER_H_
