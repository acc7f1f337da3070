// GRPO with hierarchical reward decomposition. Example:
//   bazel run //trainer:grpo_hrd -- --set steps=40 --set output_dir=/tmp/run
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "base/status.h"
#include "trainer/config/config.h"
#include "trainer/grpo/grpo_run.h"
#include "trainer/learner/policy.h"
#include "trainer/program/training_program.h"

ABSL_FLAG(std::string, config, "trainer/configs/grpo_hrd_mini.textproto",
          "configuration (GrpoHrdConfig of trainer/config/config.proto as a text file)");
ABSL_FLAG(std::string, set, "",
          "path=value overrides a field, as in optimizer.learning_rate=1e-4; may be repeated");
ABSL_FLAG(std::string, sandbox, "",
          "'none': run candidates without a sandbox on a machine that has none (same as --set "
          "verifier.sandbox=SANDBOX_NONE)");

namespace tritonrl {
namespace {

constexpr char kUsage[] =
    "Trains a policy with GRPO-HRD.\n"
    "  grpo_hrd --config=FILE [--set path=value]...\n"
    "Exit codes: 0 done, 1 failed, 2 bad flag or configuration, 75 stopped by SIGTERM, SIGUSR1 or\n"
    "SIGINT with all finished work saved (run the same command to resume).";

int Main(int argc, char** argv) {
  const SignalHandler stop = NoteStopSignals();
  auto overrides = ParseArguments(kUsage, argc, argv);
  if (!overrides.ok()) return ReportUsageError(overrides.status());
  if (const std::string sandbox = absl::GetFlag(FLAGS_sandbox); !sandbox.empty()) {
    overrides->push_back("verifier.sandbox=SANDBOX_" + sandbox);
  }
  const absl::StatusOr<std::string> path = FindInputPath(absl::GetFlag(FLAGS_config));
  if (!path.ok()) return ReportUsageError(AddContext(path.status(), "--config"));
  // RunGrpoHrd has already printed the results.
  return RunTrainingProgram(LoadGrpoHrdConfig(*path, *overrides), stop, RunGrpoHrd,
                            [](const TrainingOutcome&) {});
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) { return tritonrl::Main(argc, argv); }
