// AdamW (Loshchilov & Hutter, "Decoupled weight decay regularization") with fp32 master weights,
// over the flat buffers of model/weights.h: a few whole-buffer operations, the same on CPU and GPU.
// With several ranks each keeps and updates its pieces of the state (ZeRO-1, shard_plan.h).
#ifndef TRITONRL_TRAINER_ADAMW_H_
#define TRITONRL_TRAINER_ADAMW_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/weights.h"
#include "trainer/config.pb.h"
#include "trainer/data_parallel.h"
#include "trainer/shard_plan.h"

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
  // weights are fp32 and there is one rank they are their own master copy, else an fp32 copy of
  // what this rank keeps is made. `ranks` must outlive this object; null: alone.
  AdamW(const OptimizerConfig& config, std::shared_ptr<Weights> weights,
        DataParallel* ranks = nullptr);

  // One step on the sum of all ranks' gradients, made by all ranks together; weights are the same
  // on all of them afterwards. With g the sum scaled to clip_norm and t the number of this update:
  //   m = beta1 m + (1 - beta1) g,   v = beta2 v + (1 - beta2) g^2
  //   w = w (1 - lr * weight_decay) - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
  // Decay only where ParameterInfo::decay(). Reads one number back from the device (the norm).
  // `gradients` may be changed. Error: a lost rank.
  absl::StatusOr<UpdateResult> Step(double learning_rate, Gradients* gradients);

  // Number of updates made (t above).
  int64_t updates() const { return updates_; }
  void set_updates(int64_t updates) { updates_ = updates; }

  // State for checkpoints, each [plan().LocalSize(rank())] fp32: writing into it in place is how a
  // checkpoint is restored.
  const at::Tensor& master() const { return master_; }
  const at::Tensor& first_moment() const { return first_moment_; }
  const at::Tensor& second_moment() const { return second_moment_; }
  // Whether fp32 weights are all there is to know of the master copy; after they were changed from
  // outside TakeMaster makes it again.
  bool master_is_weights() const;
  void TakeMaster();

  const std::shared_ptr<Weights>& weights() const { return weights_; }
  const ShardPlan& plan() const { return plan_; }
  int rank() const { return ranks_ == nullptr ? 0 : ranks_->rank(); }

 private:
  bool alone() const { return plan_.ranks() == 1; }
  void MakeDecayMask();
  // What this rank keeps of a flat buffer, in one piece; with one rank the buffer itself.
  at::Tensor LocalPart(const at::Tensor& flat) const;
  // L2 norm over what all ranks keep.
  absl::StatusOr<double> Norm(const at::Tensor& local) const;
  void Update(double learning_rate, const at::Tensor& g);
  // Weights = master, rounded to the weights' type.
  absl::Status SyncWeights();

  OptimizerConfig config_;
  std::shared_ptr<Weights> weights_;
  DataParallel* const ranks_;
  const ShardPlan plan_;
  at::Tensor gradient_;  // what this rank keeps of the sum; undefined with one rank
  at::Tensor master_;
  at::Tensor first_moment_;
  at::Tensor second_moment_;
  at::Tensor decay_mask_;  // 1 where decayed; undefined without weight decay
  int64_t updates_ = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_ADAMW_H_
