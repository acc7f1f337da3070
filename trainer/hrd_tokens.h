// Lays judged samples out as one packed micro-batch with the per-token inputs of the HRD loss.
#ifndef TRITONRL_TRAINER_HRD_TOKENS_H_
#define TRITONRL_TRAINER_HRD_TOKENS_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "model/packed_batch.h"
#include "trainer/config.pb.h"
#include "trainer/hrd_loss.h"
#include "trainer/rl_batch.h"

namespace tritonrl {

// Whether samples must come with proximal_log_probs.
bool NeedsProximal(const ObjectiveConfig& objective);

HrdSettings SettingsOf(const ObjectiveConfig& objective);

struct HrdMicroBatch {
  PackedBatch batch;   // prompt + response of each sample
  at::Tensor targets;  // [T] int64: the response token that follows, -1 elsewhere
  HrdTokens tokens;    // row t belongs to the token after t, as in `targets`
};

// group_weights[i] = 1 / (G * prompts) for sample i; the 1/|o| and the class weights come on top.
HrdMicroBatch BuildHrdMicroBatch(const ObjectiveConfig& objective,
                                 const std::vector<const RlSample*>& samples,
                                 const std::vector<double>& group_weights, at::Device device);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_HRD_TOKENS_H_
