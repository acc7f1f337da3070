// Started by learner_ranks_test, alone or under mpirun, with a scratch folder as its first
// argument: learns three steps from the same global batches and prints the learner's statistics.
// Further arguments: "shrink", only the first step has more than one group; "zero2", ZeRO stage 2.
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "trainer/learner/learner.h"
#include "trainer/objective/advantage.h"
#include "trainer/program/training_program.h"
#include "trainer/testing/random_rl_batch.h"
#include "trainer/testing/test_model.h"

namespace tritonrl {
namespace {

struct Mode {
  bool shrink = false;
  int zero_stage = 1;
};

// Five groups of three samples (an odd number, so that two ranks have unequal shares), equal on all
// ranks; one group has no gradient, and one sample is not counted.
RlBatch GlobalBatch(int64_t step, const Mode& mode) {
  RlBatch batch = RandomRlBatch(MixKeys({9, static_cast<uint64_t>(step)}), 5, 3);
  for (RlSample& s : batch[3].samples) s.reward_correct = s.reward_speedup = 1;
  batch[4].samples[1].counted = false;
  if (mode.shrink && step > 0) batch.resize(1);
  return batch;
}

absl::Status Learn(const std::string& folder, const Mode& mode, ProcessGroup* ranks) {
  Policy policy = LoadTinyPolicy(absl::StrCat(folder, "/", ranks->rank()));
  LearnerOptions options;
  options.objective.set_optimizer_steps_per_epoch(2);
  options.objective.set_epochs_per_batch(2);
  options.optimizer.set_learning_rate(1e-3);
  options.optimizer.set_zero_stage(mode.zero_stage);
  options.micro_batch_tokens = 64;
  options.total_steps = 3;
  AdamW optimizer(options.optimizer, policy.weights, ranks);
  Learner learner(options, &policy, &optimizer, ranks);
  for (int64_t step = 0; step < options.total_steps; ++step) {
    RlBatch all = GlobalBatch(step, mode), mine;
    FillAdvantages(options.objective, &all);
    for (size_t g = ranks->rank(); g < all.size(); g += ranks->size()) mine.push_back(all[g]);
    ASSIGN_OR_RETURN(const LearnStats stats, learner.Learn(mine, step));
    if (!ranks->is_root()) continue;
    std::printf("%.9g %.9g %.9g %.9g %.9g %lld %lld %lld %lld\n", stats.loss, stats.gradient_norm,
                stats.clip_fraction, stats.entropy, stats.logprob_max_diff,
                static_cast<long long>(stats.tokens), static_cast<long long>(stats.samples),
                static_cast<long long>(stats.skipped_samples),
                static_cast<long long>(stats.optimizer_steps));
  }
  return absl::OkStatus();
}

std::optional<Mode> ParseMode(const std::vector<std::string>& words) {
  Mode mode;
  for (const std::string& word : words) {
    if (word == "shrink") {
      mode.shrink = true;
    } else if (word == "zero2") {
      mode.zero_stage = 2;
    } else if (word != "zero1") {
      return std::nullopt;
    }
  }
  return mode;
}

int Main(const std::string& folder, const Mode& mode) {
  auto ranks = ProcessGroup::Join(absl::Seconds(60));
  if (!ranks.ok()) return ExitCodeFor(ranks.status(), nullptr);
  return ExitCodeFor(Learn(folder, mode, ranks->get()), ranks->get());
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const auto mode = tritonrl::ParseMode(std::vector<std::string>(argv + 2, argv + argc));
  return mode.has_value() ? tritonrl::Main(argv[1], *mode) : 2;
}
