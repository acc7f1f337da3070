// Started by learner_ranks_test, alone or under mpirun, with a scratch folder as its argument:
// learns three steps from the same global batches and prints what the learner saw. With "shrink"
// among the other arguments only the first step has more than one group; with "zero2" gradients are
// sharded.
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "trainer/advantage.h"
#include "trainer/learner.h"
#include "trainer/main_support.h"
#include "trainer/test_model.h"

namespace tritonrl {
namespace {

// Five groups of three (an odd number, so that two ranks have unequal shares), the same on every
// rank; one group has nothing to learn, one sample does not count.
RlBatch GlobalBatch(int64_t step) {
  Philox random(MixKeys({9, static_cast<uint64_t>(step)}));
  RlBatch batch(5);
  for (size_t g = 0; g < batch.size(); ++g) {
    batch[g].task_id = absl::StrCat("task", g);
    for (int j = 0; j < 3; ++j) {
      RlSample& s = batch[g].samples.emplace_back();
      s.prompt.assign(4 + g, 65);
      for (uint64_t t = 0; t < 5 + random.Below(12); ++t) {
        s.response.push_back(static_cast<int32_t>(random.Below(256)));
        s.old_log_probs.push_back(static_cast<float>(-5.6 + 0.3 * random.Normal()));
      }
      s.plan_end = 2;
      s.reward_correct = g == 3 ? 1.0 : static_cast<double>(random.Below(2));
      s.reward_speedup = g == 3 ? 1.0 : 2 * random.Uniform();
      s.counted = g != 4 || j != 1;
    }
  }
  return batch;
}

absl::Status Learn(const std::string& folder, bool shrink, int zero_stage, DataParallel* ranks) {
  Policy policy = LoadTinyPolicy(absl::StrCat(folder, "/", ranks->rank()));
  LearnerOptions options;
  options.objective.set_optimizer_steps_per_epoch(2);
  options.objective.set_epochs_per_batch(2);
  options.optimizer.set_learning_rate(1e-3);
  options.optimizer.set_zero_stage(zero_stage);
  options.micro_batch_tokens = 64;
  options.total_steps = 3;
  AdamW optimizer(options.optimizer, policy.weights, ranks);
  Learner learner(options, &policy, &optimizer, ranks);
  for (int64_t step = 0; step < options.total_steps; ++step) {
    RlBatch all = GlobalBatch(step), mine;
    if (shrink && step > 0) all.resize(1);
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

int Main(const std::string& folder, bool shrink, bool zero2) {
  auto ranks = DataParallel::Join(absl::Seconds(60));
  if (!ranks.ok()) return ExitCodeFor(ranks.status(), nullptr);
  return ExitCodeFor(Learn(folder, shrink, zero2 ? 2 : 1, ranks->get()), ranks->get());
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  bool shrink = false, zero2 = false;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word != "shrink" && word != "zero1" && word != "zero2") return 2;
    shrink |= word == "shrink";
    zero2 |= word == "zero2";
  }
  return tritonrl::Main(argv[1], shrink, zero2);
}
