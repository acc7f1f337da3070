#ifndef TRITONRL_TRAINER_OBJECTIVE_ADVANTAGE_H_
#define TRITONRL_TRAINER_OBJECTIVE_ADVANTAGE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/config/config.pb.h"

// Rewards and group advantages per token class, and the batch from which the learner computes one
// step.

namespace tritonrl {

// One verified response. Response tokens [0, plan_end) are plan tokens, the rest are code tokens.
struct RlSample {
  std::vector<int32_t> prompt;
  std::vector<int32_t> response;
  // log pi_old of each response token at the sampling temperature, as computed by the engine.
  std::vector<float> old_log_probs;
  // The same under the reference policy; only if objective.kl_coefficient is above 0.
  std::vector<float> reference_log_probs;
  // The same under the policy before the first update on this batch; only if
  // objective.importance_sampling_cap is above 0 and the batch has several updates.
  std::vector<float> proximal_log_probs;
  // Response tokens [0, stale_end) were drawn from older weights than the learner's.
  int stale_end = 0;
  int plan_end = 0;

  double reward_correct = 0;  // R_correct = valid * correct
  double reward_speedup = 0;  // R_speedup = valid * clip(speedup, 2)
  // False if the verdict is an infrastructure error. The sample is then left out of its group: it
  // does not change the group's mean and has no gradient.
  bool counted = true;

  // Set by FillAdvantages.
  double reward_plan = 0;
  double reward_code = 0;
  double advantage_plan = 0;
  double advantage_code = 0;

  // Tokens of prompt and response.
  int64_t length() const { return static_cast<int64_t>(prompt.size() + response.size()); }
};

// All responses to one prompt.
struct RlGroup {
  std::string task_id;
  std::vector<RlSample> samples;

  // Number of counted samples: the G of the objective's 1/G.
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

// Weight of each class in the objective: (alpha, 1), or (1, 1) for UNIFORM, which does not
// distinguish classes.
PlanCode ClassWeights(const ObjectiveConfig& objective);

// A_j = r_j - mean of the counted r, without division by the standard deviation. Entries with
// counted[j] == false are left out of the mean and get 0. If all counted rewards are equal, the
// advantages are exactly zero (no rounding residue of the mean), so that the samples can be
// skipped.
std::vector<double> GroupAdvantages(std::span<const double> rewards,
                                    const std::vector<bool>& counted);

// Sets the reward_* and advantage_* fields for plan and code of every sample.
void FillAdvantages(const ObjectiveConfig& objective, RlBatch* batch);

// Whether any token of the sample has a gradient: a class with tokens whose advantage and weight
// are not 0. Otherwise the sample's forward and backward pass can be skipped, unless there is a KL
// penalty, which has a gradient of its own.
bool HasGradient(const ObjectiveConfig& objective, const RlSample& sample);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_OBJECTIVE_ADVANTAGE_H_
