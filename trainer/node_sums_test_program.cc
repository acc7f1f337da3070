// Started by node_sums_test under mpirun: supervised fine-tuning as //trainer:sft does it, where so
// many ranks after each other count as a node (0: nodes are machines).
// With kill_after=STEP the first rank is killed once that step is in its metrics.
//   node_sums_test_program CONFIG RANKS_PER_NODE [kill_after=STEP] [path=value ...]
#include <signal.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "parallel/exit_code.h"
#include "trainer/config.h"
#include "trainer/sft.h"

namespace tritonrl {
namespace {

void KillAfter(const std::string& step, const std::string& output_dir) {
  std::thread([wanted = absl::StrCat("\"step\":", step, ","), output_dir] {
    while (!absl::StrContains(ReadFile(output_dir + "/metrics.jsonl").value_or(""), wanted)) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    raise(SIGKILL);
  }).detach();
}

int Main(const std::string& path, int ranks_per_node, std::vector<std::string> overrides) {
  std::string kill_after;
  if (!overrides.empty() && absl::StartsWith(overrides[0], "kill_after=")) {
    kill_after = overrides[0].substr(overrides[0].find('=') + 1);
    overrides.erase(overrides.begin());
  }
  const StopSignal stop;
  const absl::StatusOr<SftConfig> config = LoadSftConfig(path, overrides);
  if (!config.ok()) return BadUsage(config.status());
  auto ranks = DataParallel::Join(absl::Seconds(60), ranks_per_node);
  if (!ranks.ok()) return ExitCodeFor(ranks.status(), nullptr);
  if (!kill_after.empty() && (*ranks)->is_root()) KillAfter(kill_after, config->output_dir());
  const absl::StatusOr<SftOutcome> outcome = RunSft(*config, ranks->get(), stop);
  if (outcome.ok()) {
    std::printf("rank %d: %s\n", (*ranks)->rank(),
                (*ranks)->bucket_way() == BucketWay::kTwoLevel ? "two levels" : "plain");
  }
  return ExitCodeFor(outcome.status(), ranks->get());
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  int ranks_per_node = 0;
  if (argc < 3 || !absl::SimpleAtoi(argv[2], &ranks_per_node)) return 2;
  return tritonrl::Main(argv[1], ranks_per_node, std::vector<std::string>(argv + 3, argv + argc));
}
