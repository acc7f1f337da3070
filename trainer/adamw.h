// AdamW (Loshchilov & Hutter, "Decoupled weight decay regularization") with fp32 master weights,
// over the flat buffers of model/weights.h: a few whole-buffer operations, the same on CPU and GPU.
#ifndef TRITONRL_TRAINER_ADAMW_H_
#define TRITONRL_TRAINER_ADAMW_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "model/weights.h"
#include "trainer/config.pb.h"

namespace tritonrl {

// Learning rate of optimizer step `step` (counted from 0) of `total_steps`: linear from
// learning_rate / warmup_steps up to learning_rate, then constant, or half a cosine that reaches
// learning_rate * final_fraction at the last step.
double LearningRate(const OptimizerConfig& config, int64_t step, int64_t total_steps);

// What one update did.
struct UpdateResult {
  double gradient_norm = 0;  // L2 norm over all parameters, before clipping
  bool skipped = false;      // the norm was not finite: nothing was changed
};

// Keeps count of updates left out one after the other; an error, with advice, once there are
// config.max_skipped_in_a_row of them.
absl::Status CountSkipped(const OptimizerConfig& config, const UpdateResult& result,
                          int* skipped_in_a_row);

class AdamW {
 public:
  // Keeps `weights` (shared with the transformer and the engine) and updates it in place. When the
  // weights are fp32 they are their own master copy, else an fp32 copy is kept.
  AdamW(const OptimizerConfig& config, std::shared_ptr<Weights> weights);

  // One step. With g the gradients scaled to clip_norm and t the number of this update:
  //   m = beta1 m + (1 - beta1) g,   v = beta2 v + (1 - beta2) g^2
  //   w = w (1 - lr * weight_decay) - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
  // Decay only where ParameterInfo::decay(). Reads one number back from the device (the norm).
  // `gradients` is scaled in place.
  UpdateResult Step(double learning_rate, Gradients* gradients);

  // Number of updates made (t above).
  int64_t updates() const { return updates_; }
  void set_updates(int64_t updates) { updates_ = updates; }

  // State for checkpoints, each [flat_size] fp32. Writing into them in place is how a checkpoint is
  // restored; call SyncWeights afterwards.
  const at::Tensor& master() const { return master_; }
  const at::Tensor& first_moment() const { return first_moment_; }
  const at::Tensor& second_moment() const { return second_moment_; }
  // Weights = master, rounded to the weights' type.
  void SyncWeights();

  const std::shared_ptr<Weights>& weights() const { return weights_; }

 private:
  OptimizerConfig config_;
  std::shared_ptr<Weights> weights_;
  at::Tensor master_;
  at::Tensor first_moment_;
  at::Tensor second_moment_;
  at::Tensor decay_mask_;  // 1 where decayed; undefined without weight decay
  int64_t updates_ = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_ADAMW_H_
