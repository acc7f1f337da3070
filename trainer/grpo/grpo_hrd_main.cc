// GRPO with hierarchical reward decomposition. Example:
//   bazel run //trainer:grpo_hrd -- --set steps=40 --set output_dir=/tmp/run
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "base/status.h"
#include "trainer/config.h"
#include "trainer/data_parallel.h"
#include "trainer/grpo/rl_run.h"
#include "trainer/main_support.h"
#include "trainer/policy.h"

ABSL_FLAG(std::string, config, "trainer/configs/grpo_hrd_mini.textproto",
          "configuration (GrpoHrdConfig of trainer/config.proto as a text file)");
ABSL_FLAG(std::string, set, "",
          "path=value overrides a field, as in optimizer.learning_rate=1e-4; may be repeated");
ABSL_FLAG(std::string, sandbox, "",
          "'none': run candidates without a sandbox on a machine that has none (same as --set "
          "verifier.sandbox=SANDBOX_NONE)");

namespace tritonrl {
namespace {

int Main(std::vector<std::string> overrides) {
  const StopSignal stop;
  if (const std::string sandbox = absl::GetFlag(FLAGS_sandbox); !sandbox.empty()) {
    overrides.push_back("verifier.sandbox=SANDBOX_" + sandbox);
  }
  const absl::StatusOr<std::string> path = FindInput(absl::GetFlag(FLAGS_config));
  absl::StatusOr<GrpoHrdConfig> config =
      path.ok() ? LoadGrpoHrdConfig(*path, overrides) : AddContext(path.status(), "--config");
  if (!config.ok()) {
    std::fprintf(stderr, "error: %s\n", Message(config.status()).c_str());
    return kExitBadUsage;
  }
  auto ranks = DataParallel::Join(absl::Seconds(config->collective_timeout_s()));
  if (!ranks.ok()) return ExitCodeFor(ranks.status(), nullptr);
  const absl::StatusOr<RlOutcome> outcome = RunGrpoHrd(*config, ranks->get(), stop);
  if (!outcome.ok()) return ExitCodeFor(outcome.status(), ranks->get());
  if (outcome->stopped) {
    if ((*ranks)->is_root()) {
      std::fprintf(stderr, "Stopped by a signal after step %lld; the same command goes on.\n",
                   static_cast<long long>(outcome->steps));
    }
    return kExitRequeue;
  }
  return kExitDone;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  const std::vector<std::string> overrides = tritonrl::TakeOverrides(&argc, argv);
  absl::SetProgramUsageMessage(
      "Trains a policy with GRPO-HRD.\n"
      "  grpo_hrd --config=FILE [--set path=value]...\n"
      "Exit codes: 0 done, 1 failed, 2 bad flag or configuration, 75 stopped by SIGTERM, SIGUSR1 "
      "or\n"
      "SIGINT with what was done saved (the same command goes on).");
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() > 1) {
    std::fprintf(stderr, "error: '%s' is no flag\n", rest[1]);
    return tritonrl::kExitBadUsage;
  }
  return tritonrl::Main(overrides);
}
