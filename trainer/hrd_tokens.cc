#include "trainer/hrd_tokens.h"

#include <ATen/ops/zeros.h>

#include "trainer/advantage.h"

namespace tritonrl {

bool NeedsProximal(const ObjectiveConfig& objective) {
  return objective.importance_cap() > 0 &&
         (objective.epochs_per_batch() > 1 || objective.optimizer_steps_per_epoch() > 1);
}

HrdSettings SettingsOf(const ObjectiveConfig& objective) {
  return {.epsilon = objective.epsilon(),
          .kl_coefficient = objective.kl_coefficient(),
          .importance_cap = objective.importance_cap()};
}

HrdMicroBatch BuildHrdMicroBatch(const ObjectiveConfig& objective,
                                 const std::vector<const RlSample*>& samples,
                                 const std::vector<double>& group_weights, at::Device device) {
  std::vector<std::vector<int32_t>> sequences;
  std::vector<int64_t> first_target;
  for (const RlSample* sample : samples) {
    std::vector<int32_t>& sequence = sequences.emplace_back(sample->prompt);
    sequence.insert(sequence.end(), sample->response.begin(), sample->response.end());
    first_target.push_back(static_cast<int64_t>(sample->prompt.size()));
  }
  HrdMicroBatch micro;
  micro.batch = PackSequences(sequences, at::kCPU);
  micro.targets = NextTokenTargets(micro.batch, first_target);

  const bool with_kl = objective.kl_coefficient() > 0;
  const bool with_proximal = NeedsProximal(objective);
  const int64_t rows = micro.batch.num_tokens();
  at::Tensor host = at::zeros({8, rows}, at::kFloat);
  float* old_log_probs = host.mutable_data_ptr<float>();
  float* advantage = old_log_probs + rows;
  float* weight = advantage + rows;
  float* mask = weight + rows;
  float* reference = mask + rows;
  float* kl_weight = reference + rows;
  float* current = kl_weight + rows;
  float* proximal = current + rows;
  const PlanCode class_weights = ClassWeights(objective);
  for (size_t i = 0; i < samples.size(); ++i) {
    const RlSample& s = *samples[i];
    const int length = static_cast<int>(s.response.size());
    const double per_token = group_weights[i] / length;
    // Row of the token before the first response token.
    const int64_t first = micro.batch.offsets[i] + first_target[i] - 1;
    for (int t = 0; t < length; ++t) {
      const bool plan = t < s.plan_end;
      const int64_t row = first + t;
      old_log_probs[row] = s.old_log_probs[t];
      advantage[row] = static_cast<float>(plan ? s.advantage_plan : s.advantage_code);
      weight[row] =
          static_cast<float>(per_token * (plan ? class_weights.plan : class_weights.code));
      mask[row] = 1;
      if (with_kl) reference[row] = s.reference_log_probs[t];
      kl_weight[row] = static_cast<float>(per_token);
      current[row] = t >= s.stale_end ? 1.0f : 0.0f;
      if (with_proximal) proximal[row] = s.proximal_log_probs[t];
    }
  }
  const at::Tensor all = host.to(device);
  micro.tokens = {.old_log_probs = all[0],
                  .advantage = all[1],
                  .weight = all[2],
                  .mask = all[3],
                  .reference_log_probs = with_kl ? all[4] : at::Tensor(),
                  .kl_weight = with_kl ? all[5] : at::Tensor(),
                  .current = all[6],
                  .proximal_log_probs = with_proximal ? all[7] : at::Tensor()};
  micro.batch.tokens = micro.batch.tokens.to(device);
  micro.batch.positions = micro.batch.positions.to(device);
  micro.targets = micro.targets.to(device);
  return micro;
}

}  // namespace tritonrl
