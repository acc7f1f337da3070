// Supervised fine-tuning. Example:
//   bazel run //trainer:sft -- --config=trainer/configs/sft_mini.textproto --set
//   output_dir=/tmp/sft
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "base/status.h"
#include "trainer/config/config.h"
#include "trainer/learner/policy.h"
#include "trainer/program/training_program.h"
#include "trainer/sft/sft_run.h"

ABSL_FLAG(std::string, config, "trainer/configs/sft_mini.textproto",
          "configuration (SftConfig of trainer/config/config.proto as a text file)");
ABSL_FLAG(std::string, set, "",
          "path=value overrides a field, as in optimizer.learning_rate=1e-4; may be repeated");

namespace tritonrl {
namespace {

constexpr char kUsage[] =
    "Supervised fine-tuning of a policy.\n"
    "  sft --config=FILE [--set path=value]...\n"
    "Exit codes: 0 done, 1 failed, 2 bad flag or configuration, 75 stopped by SIGTERM, SIGUSR1 or\n"
    "SIGINT with a checkpoint written (run the same command to resume).";

int Main(int argc, char** argv) {
  const SignalHandler stop = NoteStopSignals();
  const auto overrides = ParseArguments(kUsage, argc, argv);
  if (!overrides.ok()) return ReportUsageError(overrides.status());
  const absl::StatusOr<std::string> path = FindInputPath(absl::GetFlag(FLAGS_config));
  if (!path.ok()) return ReportUsageError(AddContext(path.status(), "--config"));
  return RunTrainingProgram(LoadSftConfig(*path, *overrides), stop, RunSft,
                            [](const TrainingOutcome& done) {
                              std::printf("trained model: %s\n", done.model_dir.c_str());
                            });
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) { return tritonrl::Main(argc, argv); }
