// What one step of reinforcement learning hands to the learner.
#ifndef TRITONRL_TRAINER_RL_BATCH_H_
#define TRITONRL_TRAINER_RL_BATCH_H_

#include <cstdint>
#include <string>
#include <vector>

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
  // objective.importance_cap is above 0 and there are several updates.
  std::vector<float> proximal_log_probs;
  // Response tokens [0, stale_end) were drawn from older weights than those that learn.
  int stale_end = 0;
  int plan_end = 0;

  double reward_correct = 0;  // R_correct = valid * correct
  double reward_speedup = 0;  // R_speedup = valid * clip(speedup, 2)
  // False: the verdict ended in a fault of ours. The sample is left out of its group: it neither
  // moves the group's mean nor gets a gradient.
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

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_RL_BATCH_H_
