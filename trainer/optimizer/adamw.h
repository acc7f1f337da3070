// AdamW (Loshchilov & Hutter, "Decoupled weight decay regularization") with fp32 master weights,
// over the flat buffers of model/weights/weights.h: torch's operators on the CPU, one kernel on a
// GPU. With several ranks each keeps and updates its shards of the state (shard_plan.h), while the
// weights of the bucket before are on their way to the others: ZeRO-1, or with optimizer.zero_stage
// 2 ZeRO-2, where gradients go through a window of memory (model/weights/gradient_ring_buffer.h)
// into these shards.
#ifndef TRITONRL_TRAINER_OPTIMIZER_ADAMW_H_
#define TRITONRL_TRAINER_OPTIMIZER_ADAMW_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/weights/weights.h"
#include "parallel/process_group.h"
#include "parallel/shard_plan.h"
#include "trainer/config/config.pb.h"

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
// config.max_consecutive_skipped of them.
absl::Status CountSkippedUpdate(const OptimizerConfig& config, const UpdateResult& result,
                                int* consecutive_skipped);

class AdamW {
 public:
  // Keeps `weights` (shared with the transformer and the engine) and updates it in place. When the
  // weights are fp32 and there is one rank they are their own master copy, else an fp32 copy of
  // what this rank keeps is made. `ranks` must outlive this object; null: alone. `bucket_elements`:
  // a multiple of kDecayBlock, see ShardPlan.
  AdamW(const OptimizerConfig& config, std::shared_ptr<Weights> weights,
        ProcessGroup* ranks = nullptr, int64_t bucket_elements = ShardPlan::kBucketElements);

  // The memory that gradients for updates go through: of all, or less if sharded().
  GradientRingBuffer ring_buffer() const;
  // Such gradients, zeros. Throws c10::Error without that memory.
  Gradients MakeGradients() const { return Gradients(*weights_, ring_buffer()); }
  // Whether gradients go away into shares as they are made: several ranks and ZeRO-2.
  bool sharded() const { return !alone() && config_.zero_stage() == 2; }

  // With several ranks: what lies from `offset` on in the gradients' buffer is final, so that
  // buckets that lie there begin to be all-reduced over the ranks while the rest is being computed.
  // Offsets fall from call to call, and are the same on all ranks. An error comes out of Step.
  // If not sharded(): final for the update to come; what the calls leave out, Step sums.
  // If sharded(): of one of the passes whose sum the update to come takes. Offset 0 ends a pass;
  // all ranks make as many, at least one.
  void OnGradientsReady(int64_t offset, const Gradients& gradients);
  // If sharded(): ahead of whatever writes gradients from `offset` on, up to those that are final.
  // Waits for sums that must have read the memory first.
  void OnGradientOverwrite(int64_t offset, const Gradients& gradients);

  // One step on the sum of all ranks' gradients, made by all ranks together; weights are the same
  // on all of them afterwards. With g the sum scaled to clip_norm and t the number of this update:
  //   m = beta1 m + (1 - beta1) g,   v = beta2 v + (1 - beta2) g^2
  //   w = w (1 - lr * weight_decay) - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
  // Decay only where ParameterInfo::decay(). Reads one number back from the device (the norm).
  // `gradients` may be changed. Error: a lost rank.
  absl::StatusOr<UpdateResult> Step(double learning_rate, Gradients* gradients);

  // What this rank keeps of the parameter's gradient in the sum that Step was last given, in
  // shards; with one rank undefined. Changed by a step that was not left out.
  std::vector<at::Tensor> ReducedGradientShards(const ParameterInfo& info) const;

  // Bytes of state for each parameter that a rank of `ranks` keeps: moments, the master copy and
  // the gradient's sum. (With ZeRO-2 that sum is all there is of gradients, and is not counted.)
  static int64_t StateBytes(at::ScalarType weights, int ranks, int zero_stage = 1);

  // Number of updates made (t above).
  int64_t updates() const { return updates_; }
  void set_updates(int64_t updates) { updates_ = updates; }

  // State for checkpoints, each [plan().LocalSize(rank())] fp32: writing into it in place is how a
  // checkpoint is restored.
  const at::Tensor& master() const { return master_; }
  const at::Tensor& first_moment() const { return first_moment_; }
  const at::Tensor& second_moment() const { return second_moment_; }
  // Whether fp32 weights are all there is to know of the master copy; after they were changed from
  // outside ResetMasterFromWeights makes it again.
  bool master_is_weights() const;
  void ResetMasterFromWeights();

  const std::shared_ptr<Weights>& weights() const { return weights_; }
  const ShardPlan& plan() const { return plan_; }
  int rank() const { return ranks_ == nullptr ? 0 : ranks_->rank(); }

 private:
  bool alone() const { return plan_.ranks() == 1; }
  // Slices of the state and what belongs to them.
  struct ShardSlices {
    at::Tensor gradient, master, first_moment, second_moment;
    at::Tensor weights;  // a slice of the model's
    at::Tensor decayed;  // marks, or undefined
  };

  void MarkDecay();
  // What this rank keeps of a flat buffer, in one shard; with one rank the buffer itself.
  at::Tensor LocalShard(const at::Tensor& flat) const;
  // Begins to sum the buckets from `offset` on that have not begun.
  void StartReduceFrom(int64_t offset, const Gradients& gradients);
  // L2 norm over what all ranks keep.
  absl::StatusOr<double> Norm(const at::Tensor& local) const;
  // What OnGradientsReady has not begun, and the end of all of it.
  absl::Status FinishReduce(const Gradients& gradients);
  // This rank's shard of a bucket, with the gradient times `scale`; its weights as well, rounded.
  void UpdateShard(double learning_rate, double scale, int64_t bucket, const at::Tensor& g);
  void UpdateWithTorch(double learning_rate, double scale, const ShardSlices& shard);
  void UpdateOnGpu(double learning_rate, double scale, const ShardSlices& shard);

  OptimizerConfig config_;
  std::shared_ptr<Weights> weights_;
  ProcessGroup* const ranks_;
  const ShardPlan plan_;
  at::Tensor gradient_;  // what this rank keeps of the sum; undefined with one rank
  at::Tensor master_;
  at::Tensor first_moment_;
  at::Tensor second_moment_;
  // One byte for each kDecayBlock elements, 1 where decayed; undefined without weight decay.
  at::Tensor decayed_;
  int64_t unreduced_;   // buckets below this number have not begun to be summed
  int64_t passes_ = 0;  // whole ones since the last update, if sharded()
  absl::Status reduce_status_;
  int64_t updates_ = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_OPTIMIZER_ADAMW_H_
