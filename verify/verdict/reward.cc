#include "verify/verdict/reward.h"

#include <algorithm>

#include "verify/verdict/verdict.h"

namespace tritonrl {

std::optional<Rewards> ComputeRewards(const Verdict& verdict, double speedup_clip) {
  if (IsInfraError(verdict)) return std::nullopt;
  Rewards rewards;
  if (!IsValid(verdict)) return rewards;
  rewards.correct = IsCorrect(verdict) ? 1.0 : 0.0;
  rewards.speedup = std::clamp(SpeedupOf(verdict), 0.0, speedup_clip);
  return rewards;
}

double UniformReward(const Rewards& rewards, double beta) {
  return beta * rewards.correct + (1.0 - beta) * rewards.speedup;
}

}  // namespace tritonrl
