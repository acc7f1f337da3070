#include "trainer/objective/advantage.h"

#include <algorithm>

namespace tritonrl {

PlanCode AssignRewards(const ObjectiveConfig& objective, double reward_correct,
                       double reward_speedup) {
  switch (objective.reward_shape()) {
    case UNIFORM: {
      const double r = objective.beta() * reward_correct + (1 - objective.beta()) * reward_speedup;
      return {r, r};
    }
    case SPEEDUP_SPEEDUP:
      return {reward_speedup, reward_speedup};
    case HRD:
      break;
  }
  return {reward_speedup, reward_correct};
}

PlanCode ClassWeights(const ObjectiveConfig& objective) {
  if (objective.reward_shape() == UNIFORM) return {1, 1};
  return {objective.alpha(), 1};
}

std::vector<double> GroupAdvantages(std::span<const double> rewards,
                                    const std::vector<bool>& counted) {
  std::vector<double> advantages(rewards.size(), 0.0);
  double sum = 0, low = 0, high = 0;
  int n = 0;
  for (size_t j = 0; j < rewards.size(); ++j) {
    if (!counted[j]) continue;
    low = n == 0 ? rewards[j] : std::min(low, rewards[j]);
    high = n == 0 ? rewards[j] : std::max(high, rewards[j]);
    sum += rewards[j];
    ++n;
  }
  if (n == 0 || low == high) return advantages;
  for (size_t j = 0; j < rewards.size(); ++j) {
    if (counted[j]) advantages[j] = rewards[j] - sum / n;
  }
  return advantages;
}

void FillAdvantages(const ObjectiveConfig& objective, RlBatch* batch) {
  for (RlGroup& group : *batch) {
    std::vector<double> plan, code;
    std::vector<bool> counted;
    for (RlSample& sample : group.samples) {
      const PlanCode reward =
          AssignRewards(objective, sample.reward_correct, sample.reward_speedup);
      plan.push_back(sample.reward_plan = reward.plan);
      code.push_back(sample.reward_code = reward.code);
      counted.push_back(sample.counted);
    }
    const std::vector<double> a_plan = GroupAdvantages(plan, counted);
    const std::vector<double> a_code = GroupAdvantages(code, counted);
    for (size_t j = 0; j < group.samples.size(); ++j) {
      group.samples[j].advantage_plan = a_plan[j];
      group.samples[j].advantage_code = a_code[j];
    }
  }
}

bool HasGradient(const ObjectiveConfig& objective, const RlSample& sample) {
  if (!sample.counted) return false;
  const PlanCode weight = ClassWeights(objective);
  const int length = static_cast<int>(sample.response.size());
  const bool plan = sample.plan_end > 0 && weight.plan * sample.advantage_plan != 0;
  const bool code = sample.plan_end < length && weight.code * sample.advantage_code != 0;
  return plan || code;
}

}  // namespace tritonrl
