// The paper's two reward functions on a verdict:
//   R_correct = valid * correct
//   R_speedup = valid * clip(speedup, 2), where speedup already contains correct.
#ifndef TRITONRL_VERIFY_VERDICT_REWARD_H_
#define TRITONRL_VERIFY_VERDICT_REWARD_H_

#include <optional>

#include "verify/verdict/verdict.pb.h"

namespace tritonrl {

// Upper end of the speedup reward, so that extreme values do not unsettle training.
inline constexpr double kSpeedupClip = 2.0;

struct Rewards {
  double correct = 0.0;  // R_correct: 0 or 1.
  double speedup = 0.0;  // R_speedup: in [0, clip].
};

// The rewards of one verdict; nullopt for an infrastructure error, which is no reward at all (leave
// the sample out).
std::optional<Rewards> ComputeRewards(const Verdict& verdict, double speedup_clip = kSpeedupClip);

// The uniform reward of the paper's comparison: beta * R_correct + (1 - beta) * R_speedup, beta in
// [0, 1].
double UniformReward(const Rewards& rewards, double beta);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_VERDICT_REWARD_H_
