// What the training programs' main functions share: overrides, signals, exit codes.
#ifndef TRITONRL_TRAINER_MAIN_SUPPORT_H_
#define TRITONRL_TRAINER_MAIN_SUPPORT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "trainer/data_parallel.h"

namespace tritonrl {

// Exit codes of the training programs.
enum ExitCode {
  kExitDone = 0,
  kExitFailed = 1,    // an error, said in one sentence on stderr
  kExitBadUsage = 2,  // a flag or the configuration
  kExitRequeue = 75,  // stopped by a signal with a checkpoint written: the same command goes on
};

// Takes every `--set path=value` and `--set=path=value` out of the command line (Abseil's flags
// keep only the last of several) and returns the assignments in order. Call before
// ParseCommandLine.
std::vector<std::string> TakeOverrides(int* argc, char** argv);

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

// Prints "error: message" for a bad status and returns the exit code. With several ranks a failing
// one ends the job, since the others can't know.
int ExitCodeFor(const absl::Status& status, DataParallel* ranks);

// CPU threads for one of several ranks: `configured`, or its share of the cores when that is 0.
int ThreadsFor(int configured, const DataParallel& ranks);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_MAIN_SUPPORT_H_
