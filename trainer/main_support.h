// What the training programs' main functions share: overrides, signals, exit codes.
#ifndef TRITONRL_TRAINER_MAIN_SUPPORT_H_
#define TRITONRL_TRAINER_MAIN_SUPPORT_H_

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "parallel/data_parallel.h"
#include "parallel/exit_code.h"
#include "trainer/same_config.h"

namespace tritonrl {

// Takes every `--set path=value` and `--set=path=value` out of the command line (Abseil's flags
// keep only the last of several) and returns the assignments in order. Call before
// ParseCommandLine.
std::vector<std::string> TakeOverrides(int* argc, char** argv);

// The beginning of such a program: sets the usage message, parses the flags and returns the
// overrides. InvalidArgument names an argument that is no flag.
absl::StatusOr<std::vector<std::string>> ParseArguments(const char* usage, int argc, char** argv);

// Prints "error: message" for a mistake in the call and returns kExitBadUsage.
int BadUsage(const absl::Status& status);

// Notes SIGTERM, SIGUSR1 and SIGINT, so that a training loop can write a checkpoint and leave. A
// second SIGINT ends the process at once.
class StopSignal {
 public:
  // Installs the handlers; one object a process.
  StopSignal();
  // The signal that came, or 0.
  int received() const;
  bool requested() const { return received() != 0; }
  // As if `signal` had come (tests, other threads).
  static void Raise(int signal);
};

// The rest of a training program once its configuration is read: joins the ranks, which must all
// have the same one, calls run(config, ranks, stop), an absl::StatusOr of an outcome with `stopped`
// and `steps`, and returns the exit code; done(outcome) says on the first rank what there is.
template <typename Config, typename Run, typename Done>
int RunTraining(const absl::StatusOr<Config>& config, const StopSignal& stop, const Run& run,
                const Done& done) {
  if (!config.ok()) return BadUsage(config.status());
  auto ranks = DataParallel::Join(absl::Seconds(config->collective_timeout_s()));
  if (!ranks.ok()) return ExitCodeFor(ranks.status(), nullptr);
  const absl::Status same = SameConfigOnAllRanks(*config, ranks->get());
  if (!same.ok()) return ExitCodeFor(same, ranks->get());
  const auto outcome = run(*config, ranks->get(), stop);
  if (!outcome.ok()) return ExitCodeFor(outcome.status(), ranks->get());
  if (outcome->stopped) {
    if ((*ranks)->is_root()) {
      std::fprintf(stderr, "Stopped by a signal after step %lld; the same command goes on.\n",
                   static_cast<long long>(outcome->steps));
    }
    return kExitRequeue;
  }
  if ((*ranks)->is_root()) done(*outcome);
  return kExitDone;
}

// CPU threads for one of several ranks: `configured`, or its share of the cores when that is 0.
int ThreadsFor(int configured, const DataParallel& ranks);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_MAIN_SUPPORT_H_
