#ifndef TRITONRL_TRAINER_PROGRAM_TRAINING_PROGRAM_H_
#define TRITONRL_TRAINER_PROGRAM_TRAINING_PROGRAM_H_

#include <google/protobuf/message.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "base/program.h"
#include "parallel/process_group.h"

// The common parts of the training programs' main functions: arguments, ranks, exit codes, and a
// timer of the start-up.

namespace tritonrl {

// Lists the fields whose values differ, as in "modified: optimizer.learning_rate: 0.0001 -> 1e-05;
// modified: ..."; empty if there are none. A field that is not set has its default value.
std::string ConfigDifferences(const google::protobuf::Message& before,
                              const google::protobuf::Message& after);

// Compares the configurations of all ranks, because different ones would silently train different
// losses. Called by all ranks together. InvalidArgument on every rank names the first rank whose
// configuration differs from rank 0's, and each field that differs.
absl::Status CheckSameConfigOnAllRanks(const google::protobuf::Message& config,
                                       ProcessGroup* ranks);

// Removes every `--set path=value` and `--set=path=value` from the command line and returns the
// assignments in order. Must be called before ParseCommandLine, because Abseil keeps only the last
// of several equal flags.
std::vector<std::string> ExtractOverrides(int* argc, char** argv);

// Sets the usage message, parses the flags and returns the overrides. InvalidArgument names an
// argument that is not a flag.
absl::StatusOr<std::vector<std::string>> ParseArguments(const char* usage, int argc, char** argv);

// Prints "error: message" and returns kExitBadUsage.
int ReportUsageError(const absl::Status& status);

// Handler of the signals after which a training loop writes a checkpoint and ends: SIGTERM, SIGUSR1
// and SIGINT. Only a second SIGINT ends the process at once, as Slurm may send SIGTERM more than
// once.
inline SignalHandler NoteStopSignals() { return SignalHandler({SIGINT}, {SIGTERM, SIGUSR1}); }

// Runs a training program and returns its exit code: joins the ranks, checks that all have the same
// configuration and calls run(config, ranks, stop), which returns an absl::StatusOr of an outcome
// with `stopped` and `steps`. If the run is complete, rank 0 calls done(outcome).
template <typename Config, typename Run, typename Done>
int RunTrainingProgram(const absl::StatusOr<Config>& config, const SignalHandler& stop,
                       const Run& run, const Done& done) {
  if (!config.ok()) return ReportUsageError(config.status());
  auto ranks = ProcessGroup::Join(absl::Seconds(config->collective_timeout_s()));
  if (!ranks.ok()) return ExitCodeFor(ranks.status(), nullptr);
  const absl::Status same = CheckSameConfigOnAllRanks(*config, ranks->get());
  if (!same.ok()) return ExitCodeFor(same, ranks->get());
  const auto outcome = run(*config, ranks->get(), stop);
  if (!outcome.ok()) return ExitCodeFor(outcome.status(), ranks->get());
  if (outcome->stopped) {
    if ((*ranks)->is_root()) {
      Log(LogLevel::kInfo, absl::StrCat("Stopped by a signal after step ", outcome->steps,
                                        "; run the same command to resume."));
    }
    return kExitRequeue;
  }
  if ((*ranks)->is_root()) done(*outcome);
  return kExitDone;
}

// CPU threads of one rank: `configured`, or this rank's share of the machine's cores if that is 0.
int ThreadsFor(int configured, const ProcessGroup& ranks);

// Measures the phases of the start-up. Each phase begins where the previous one ends.
class StartupTimer {
 public:
  // Starts the clock at the start of this process, so that the time before this call (shared
  // libraries, flags, joining the other ranks) is the first phase, "launch". Starts it now if the
  // system does not report the start time of the process.
  StartupTimer();
  // Uses the clock `now`, for a process that started `age` ago.
  StartupTimer(absl::Duration age, std::function<absl::Time()> now);

  // Assigns the time since the end of the last phase to phase `what`; times of equal names are
  // added.
  void EndPhase(const std::string& what);

  // A line such as "first step begins 4.2 s after the launch: launch 0.5 s, weights 2.1 s, ...",
  // with the phases in the order in which they first ended; "the rest" is the sum of phases under
  // 0.05 s.
  std::string Summary() const;

 private:
  std::function<absl::Time()> now_;
  absl::Time last_;
  std::vector<std::pair<std::string, absl::Duration>> parts_;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_PROGRAM_TRAINING_PROGRAM_H_
