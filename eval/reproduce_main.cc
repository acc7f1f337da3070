// Reproduces a table of the paper. Example:
//   bazel run //eval:reproduce -- --table=reward_shape --scale=mini
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "eval/experiment.h"
#include "trainer/program/training_program.h"

ABSL_FLAG(std::string, table, "reward_shape", "which table: reward_shape");
ABSL_FLAG(std::string, scale, "mini", "at which scale: mini");
ABSL_FLAG(std::string, output, "",
          "folder for the runs and the table; empty: runs/<table>_<scale>");
ABSL_FLAG(std::string, set, "",
          "path=value overrides a field of every training's configuration, as in steps=40; may be "
          "repeated");

namespace tritonrl {
namespace {

constexpr char kUsage[] =
    "Trains what a table of the paper compares and writes the table as Markdown. Trainings that\n"
    "are complete are not repeated. Exit codes: 0 done, 1 failed, 2 bad flag, 75 stopped by a\n"
    "signal (run the same command to resume).";

absl::Status Reproduce(const std::vector<std::string>& overrides, const SignalHandler& stop) {
  const std::string table = absl::GetFlag(FLAGS_table), scale = absl::GetFlag(FLAGS_scale);
  ASSIGN_OR_RETURN(const Experiment experiment, FindExperiment(table, scale));
  ExperimentOptions options;
  const std::string output = absl::GetFlag(FLAGS_output);
  options.output = UserPath(output.empty() ? absl::StrCat("runs/", table, "_", scale) : output);
  options.overrides = overrides;
  options.stopped = [&stop] { return stop.requested(); };
  ASSIGN_OR_RETURN(options.trainer, Runfile("trainer/grpo/grpo_hrd"));
  RETURN_IF_ERROR(CreateDirectories(options.output));
  const std::string path = JoinPath(options.output, table + ".md");
  std::vector<ArmResult> results;
  for (size_t i = 0; i < experiment.arms.size(); ++i) {
    const Arm& arm = experiment.arms[i];
    std::fprintf(stderr, "Training %zu of %zu: %s\n", i + 1, experiment.arms.size(),
                 arm.name.c_str());
    ASSIGN_OR_RETURN(ArmResult result, RunArm(experiment, arm, options));
    results.push_back(std::move(result));
    // Written after each arm, so that a later failure loses no result.
    RETURN_IF_ERROR(WriteFileAtomic(path, ExperimentMarkdown(experiment, options, results)));
  }
  std::printf("\n%s\nWritten to %s\n", ExperimentMarkdown(experiment, options, results).c_str(),
              path.c_str());
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  const auto overrides = ParseArguments(kUsage, argc, argv);
  if (!overrides.ok()) return ReportUsageError(overrides.status());
  const SignalHandler stop = NoteStopSignals();
  const absl::Status status = Reproduce(*overrides, stop);
  if (absl::IsCancelled(status)) {
    std::fprintf(stderr, "stopped by a signal; run the same command to resume\n");
    return kExitRequeue;
  }
  if (absl::IsInvalidArgument(status)) return ReportUsageError(status);
  return ExitCodeFor(status, nullptr);
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) { return tritonrl::Main(argc, argv); }
