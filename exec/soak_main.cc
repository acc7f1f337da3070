// bazel run //exec:soak: many candidates of which a share hangs, crashes, forks, fills memory.
//
// Exit codes: 0 every verdict came and was its own, nothing is left, memory is flat; 1 otherwise.
#include <stdio.h>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "exec/testing/soak.h"

ABSL_FLAG(int, count, 2000, "candidates");
ABSL_FLAG(double, evil, 1.0 / 3, "share of evil ones, 0 to 1");
ABSL_FLAG(uint64_t, seed, 1, "draws kinds and order");
ABSL_FLAG(int, workers, 2, "candidates at once");
ABSL_FLAG(std::string, device, "interpreter", "interpreter or cuda");
ABSL_FLAG(std::string, sandbox, "bubblewrap", "bubblewrap or none");
ABSL_FLAG(bool, torch_runner, true, "the real runner; false: plain Python without torch");

namespace tritonrl {
namespace {

void PrintReport(const SoakReport& report) {
  printf("sandbox: %s\n", report.sandbox.c_str());
  for (const auto& [kind, count] : report.kinds) printf("  %-20s %6d\n", kind.c_str(), count);
  printf("outcomes:\n");
  for (const auto& [name, count] : report.outcomes) printf("  %-20s %6d\n", name.c_str(), count);
  for (const SoakMemory& memory : report.memory) {
    printf("after %5d verdicts: supervisor %.1f MiB, its workers %.1f MiB (private memory)\n",
           memory.verdicts, memory.supervisor / 1048576.0, memory.workers / 1048576.0);
  }
  printf("%d verdicts in %.0f s, %.2f a second; workers started %ld, lost %ld\n",
         static_cast<int>(report.counts.jobs), report.seconds,
         static_cast<double>(report.counts.jobs) / report.seconds,
         static_cast<long>(report.counts.workers_started),
         static_cast<long>(report.counts.workers_lost));
  for (const std::string& wrong : report.wrong) printf("WRONG %s\n", wrong.c_str());
  for (const std::string& left : report.left) printf("LEFT %s\n", left.c_str());
  printf("wrong or lost verdicts: %zu; left behind: %zu; memory %s\n", report.wrong.size(),
         report.left.size(), report.MemoryIsFlat() ? "flat" : "GROWS");
}

int Main() {
  SoakOptions options;
  options.count = absl::GetFlag(FLAGS_count);
  options.evil_share = absl::GetFlag(FLAGS_evil);
  options.seed = absl::GetFlag(FLAGS_seed);
  options.workers = absl::GetFlag(FLAGS_workers);
  options.device = absl::GetFlag(FLAGS_device);
  options.sandbox = absl::GetFlag(FLAGS_sandbox);
  options.torch_runner = absl::GetFlag(FLAGS_torch_runner);
  options.progress = [&](int done) {
    if (done % 100 == 0) fprintf(stderr, "%d of %d\n", done, options.count);
  };
  const auto report = RunSoak(options);
  if (!report.ok()) {
    fprintf(stderr, "%s\n", std::string(report.status().message()).c_str());
    return 1;
  }
  PrintReport(*report);
  return report->wrong.empty() && report->left.empty() && report->MemoryIsFlat() ? 0 : 1;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Many candidates, a share of them evil, through one pool.");
  absl::ParseCommandLine(argc, argv);
  return tritonrl::Main();
}
