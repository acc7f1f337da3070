#include "trainer/hrd_tokens.h"

#include <ATen/ops/zeros.h>

#include "trainer/advantage.h"

namespace tritonrl {

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
  const int64_t rows = micro.batch.num_tokens();
  at::Tensor host = at::zeros({6, rows}, at::kFloat);
  float* old_log_probs = host.mutable_data_ptr<float>();
  float* advantage = old_log_probs + rows;
  float* weight = advantage + rows;
  float* mask = weight + rows;
  float* reference = mask + rows;
  float* kl_weight = reference + rows;
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
    }
  }
  const at::Tensor all = host.to(device);
  micro.tokens = {all[0], all[1], all[2], all[3], {}, {}};
  if (with_kl) {
    micro.tokens.reference_log_probs = all[4];
    micro.tokens.kl_weight = all[5];
  }
  micro.batch.tokens = micro.batch.tokens.to(device);
  micro.batch.positions = micro.batch.positions.to(device);
  micro.targets = micro.targets.to(device);
  return micro;
}

}  // namespace tritonrl
