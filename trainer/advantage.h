// From verdicts to advantages: which reward each token class gets, and its distance from the mean
// of the group.
#ifndef TRITONRL_TRAINER_ADVANTAGE_H_
#define TRITONRL_TRAINER_ADVANTAGE_H_

#include <span>
#include <vector>

#include "trainer/config.pb.h"
#include "trainer/rl_batch.h"

namespace tritonrl {

// A value for plan tokens and one for code tokens.
struct PlanCode {
  double plan = 0;
  double code = 0;
};

// The rewards r_plan and r_code of one response:
//   HRD               plan R_speedup, code R_correct
//   UNIFORM           both beta * R_correct + (1 - beta) * R_speedup
//   SPEEDUP_SPEEDUP   both R_speedup
PlanCode AssignRewards(const ObjectiveConfig& objective, double reward_correct,
                       double reward_speedup);

// Weight of each class in the objective: (alpha, 1), or (1, 1) for UNIFORM, whose objective has no
// classes.
PlanCode ClassWeights(const ObjectiveConfig& objective);

// A_j = r_j - mean of the counted r, without division by the standard deviation. Entries with
// counted[j] == false are left out of the mean and get 0. A group whose counted rewards are all
// equal gives exact zeros (no rounding residue of the mean), so that its samples can be skipped.
std::vector<double> GroupAdvantages(std::span<const double> rewards,
                                    const std::vector<bool>& counted);

// Fills in the reward_* and advantage_* fields for plan and code of every sample. A group's are its
// own.
void FillAdvantages(const ObjectiveConfig& objective, RlGroup* group);
void FillAdvantages(const ObjectiveConfig& objective, RlBatch* batch);

// Whether any token of the sample has a gradient: a class with tokens, an advantage and a weight
// that are not 0. The sample's forward and backward pass can be skipped otherwise (as long as there
// is no KL penalty, which has a gradient of its own).
bool HasGradient(const ObjectiveConfig& objective, const RlSample& sample);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_ADVANTAGE_H_
