#include "trainer/grpo/rl_batch_builder.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "trainer/advantage.h"
#include "verify/reward.h"
#include "verify/verdict.h"

namespace tritonrl {
namespace {

// Tokens that were not drawn from weights number `version`; they come before those that were.
int TokensBefore(uint64_t version, const Sample& sample) {
  int64_t tokens = 0;
  for (const VersionRun& run : sample.versions) tokens += run.version == version ? 0 : run.tokens;
  return static_cast<int>(tokens);
}

}  // namespace

RlGroup BuildRlGroup(const SampleBatch& batch, const SampleGroup& group,
                     const ObjectiveConfig& objective) {
  RlGroup rl;
  rl.task_id = group.task->task.id;
  for (const JudgedSample& judged : group.samples) {
    RlSample sample;
    sample.prompt = group.task->tokens;
    sample.response = judged.sample.tokens;
    sample.old_log_probs = judged.sample.log_probs;
    sample.plan_end = judged.plan_end;
    sample.stale_end = TokensBefore(batch.step, judged.sample);
    const std::optional<Rewards> rewards = ComputeRewards(judged.verdict, objective.speedup_clip());
    sample.counted = rewards.has_value();
    if (rewards.has_value()) {
      sample.reward_correct = rewards->correct;
      sample.reward_speedup = rewards->speedup;
    }
    rl.samples.push_back(std::move(sample));
  }
  FillAdvantages(objective, &rl);
  return rl;
}

RlBatch BuildRlBatch(const SampleBatch& batch, const ObjectiveConfig& objective) {
  RlBatch rl;
  for (const SampleGroup& group : batch.groups) {
    rl.push_back(BuildRlGroup(batch, group, objective));
  }
  return rl;
}

std::string FirstFault(const SampleBatch& batch) {
  for (const SampleGroup& group : batch.groups) {
    for (const JudgedSample& judged : group.samples) {
      if (judged.judged && IsFaultOfOurs(judged.verdict)) {
        return absl::StrCat("task ", group.task->task.id, ": ",
                            judged.verdict.fault_of_ours().text());
      }
    }
  }
  return "";
}

}  // namespace tritonrl
