#ifndef TRITONRL_TRAINER_OBJECTIVE_ADVANTAGE_H_
#define TRITONRL_TRAINER_OBJECTIVE_ADVANTAGE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/config/config.pb.h"

// From verdicts to advantages: the reward of each token class, and its distance from the mean of
// the group; and the batch that one step of reinforcement learning gives the learner.

namespace tritonrl {

// One response. Response tokens [0, plan_end) are plan tokens, the rest are code tokens.
struct RlSample {
  std::vector<int32_t> prompt;
  std::vector<int32_t> response;
  // log pi_old of each response token at the sampling temperature, as the engine drew it.
  std::vector<float> old_log_probs;
  // The same under the starting policy; only when objective.kl_coefficient is above 0.
  std::vector<float> reference_log_probs;
  // The same under the policy before the first update on this batch; only when
  // objective.importance_sampling_cap is above 0 and there are several updates.
  std::vector<float> proximal_log_probs;
  // Response tokens [0, stale_end) were drawn from older weights than those that learn.
  int stale_end = 0;
  int plan_end = 0;

  double reward_correct = 0;  // R_correct = valid * correct
  double reward_speedup = 0;  // R_speedup = valid * clip(speedup, 2)
  // False: the verdict ended in an infrastructure error. The sample is left out of its group: it
  // neither moves the group's mean nor gets a gradient.
  bool counted = true;

  // Filled in by FillAdvantages (advantage.h).
  double reward_plan = 0;
  double reward_code = 0;
  double advantage_plan = 0;
  double advantage_code = 0;

  // Tokens that pass through the model.
  int64_t length() const { return static_cast<int64_t>(prompt.size() + response.size()); }
};

// All responses to one prompt.
struct RlGroup {
  std::string task_id;
  std::vector<RlSample> samples;

  // Samples that count: the G of the objective's 1/G.
  int counted() const {
    int n = 0;
    for (const RlSample& sample : samples) n += sample.counted ? 1 : 0;
    return n;
  }
};

using RlBatch = std::vector<RlGroup>;

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

// Fills in the reward_* and advantage_* fields for plan and code of every sample.
void FillAdvantages(const ObjectiveConfig& objective, RlBatch* batch);

// Whether any token of the sample has a gradient: a class with tokens, an advantage and a weight
// that are not 0. The sample's forward and backward pass can be skipped otherwise (as long as there
// is no KL penalty, which has a gradient of its own).
bool HasGradient(const ObjectiveConfig& objective, const RlSample& sample);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_OBJECTIVE_ADVANTAGE_H_
