// Supervised fine-tuning. Example:
//   bazel run //trainer:sft -- --config=trainer/configs/sft_mini.textproto --set
//   output_dir=/tmp/sft
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "base/status.h"
#include "trainer/config.h"
#include "trainer/data_parallel.h"
#include "trainer/main_support.h"
#include "trainer/policy.h"
#include "trainer/sft.h"

ABSL_FLAG(std::string, config, "trainer/configs/sft_mini.textproto",
          "configuration (SftConfig of trainer/config.proto as a text file)");
ABSL_FLAG(std::string, set, "",
          "path=value overrides a field, as in optimizer.learning_rate=1e-4; may be repeated");

namespace tritonrl {
namespace {

int Main(const std::vector<std::string>& overrides) {
  const StopSignal stop;
  const absl::StatusOr<std::string> path = FindInput(absl::GetFlag(FLAGS_config));
  absl::StatusOr<SftConfig> config =
      path.ok() ? LoadSftConfig(*path, overrides) : AddContext(path.status(), "--config");
  if (!config.ok()) {
    std::fprintf(stderr, "error: %s\n", Message(config.status()).c_str());
    return kExitBadUsage;
  }
  auto ranks = DataParallel::Join(absl::Seconds(config->collective_timeout_s()));
  if (!ranks.ok()) return ExitCodeFor(ranks.status(), nullptr);
  const absl::StatusOr<SftOutcome> outcome = RunSft(*config, ranks->get(), stop);
  if (!outcome.ok()) return ExitCodeFor(outcome.status(), ranks->get());
  if (outcome->stopped) {
    if ((*ranks)->is_root()) {
      std::fprintf(stderr, "stopped by a signal after step %lld; the same command goes on\n",
                   static_cast<long long>(outcome->steps));
    }
    return kExitRequeue;
  }
  if ((*ranks)->is_root()) std::printf("trained model: %s\n", outcome->model_dir.c_str());
  return kExitDone;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  const std::vector<std::string> overrides = tritonrl::TakeOverrides(&argc, argv);
  absl::SetProgramUsageMessage(
      "Supervised fine-tuning of a policy.\n"
      "  sft --config=FILE [--set path=value]...\n"
      "Exit codes: 0 done, 1 failed, 2 bad flag or configuration, 75 stopped by SIGTERM, SIGUSR1 "
      "or\n"
      "SIGINT with a checkpoint written (the same command goes on).");
  absl::ParseCommandLine(argc, argv);
  return tritonrl::Main(overrides);
}
