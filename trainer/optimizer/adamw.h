// AdamW (Loshchilov & Hutter, "Decoupled weight decay regularization") with fp32 master weights
// over the flat buffers of model/weights/weights.h, sharded over ranks as ZeRO-1 or ZeRO-2.
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
#include "parallel/zero_shard_plan.h"
#include "trainer/config/config.pb.h"

namespace tritonrl {

// Optimizer steps of the warm-up: warmup_steps, or warmup_share of `total_steps`, rounded down.
int64_t WarmupSteps(const OptimizerConfig& config, int64_t total_steps);

// Learning rate of optimizer step `step` (counted from 0) of `total_steps`: linear from
// learning_rate / WarmupSteps up to learning_rate, then constant, or half a cosine that reaches
// learning_rate * final_fraction at the last step.
double LearningRate(const OptimizerConfig& config, int64_t step, int64_t total_steps);

struct UpdateResult {
  double gradient_norm = 0;  // L2 norm over all parameters, before clipping
  bool skipped = false;      // the norm was not finite: nothing was changed
};

// Counts consecutive skipped updates. Internal, with advice for the user, after
// config.max_consecutive_skipped of them.
absl::Status CountSkippedUpdate(const OptimizerConfig& config, const UpdateResult& result,
                                int* consecutive_skipped);

// Uses torch's operators on the CPU and one kernel on a GPU. With several ranks each keeps and
// updates its shards of the state (zero_shard_plan.h); with optimizer.zero_stage 2 gradients are
// reduced into the shards through a ring buffer (model/weights/gradient_ring_buffer.h). The
// all-gather of a bucket's weights overlaps the update of the next bucket.
class AdamW {
 public:
  // Updates `weights`, shared with the transformer and the engine, in place. With fp32 weights and
  // one rank they are their own master copy; otherwise the optimizer makes an fp32 copy of this
  // rank's shard. `ranks` must outlive this object; null: one rank. `bucket_elements` is a multiple
  // of kDecayBlock, see ZeroShardPlan.
  AdamW(const OptimizerConfig& config, std::shared_ptr<Weights> weights,
        ProcessGroup* ranks = nullptr, int64_t bucket_elements = ZeroShardPlan::kBucketElements);

  // The memory layout of gradients: the whole flat buffer, or a ring buffer if sharded().
  GradientRingBuffer ring_buffer() const;
  // Allocates zero gradients with this layout. Throws c10::Error if out of memory.
  Gradients MakeGradients() const { return Gradients(*weights_, ring_buffer()); }
  // Whether gradients are reduced into shards during the backward pass: several ranks and ZeRO-2.
  bool sharded() const { return !alone() && config_.zero_stage() == 2; }

  // With several ranks: marks the gradients from `offset` on in the flat buffer as complete, so
  // that the reduction of their buckets starts during the backward pass. Offsets decrease from call
  // to call and are the same on all ranks. Step returns an error of the reduction.
  // ZeRO-1 (not sharded()): the gradients are complete for the next update; Step reduces all
  // buckets that were not marked. ZeRO-2 (sharded()): they are complete for this micro-batch, and
  // offset 0 ends the micro-batch; the next update uses the sum over all micro-batches. All ranks
  // have the same number of micro-batches, at least one.
  void OnGradientsReady(int64_t offset, const Gradients& gradients);
  // If sharded(): called before gradients from `offset` on, up to the complete ones, are written.
  // Waits for the reductions that read this part of the ring buffer.
  void OnGradientOverwrite(int64_t offset, const Gradients& gradients);

  // One update with the sum of all ranks' gradients. Called by all ranks together; their weights
  // are equal afterwards. With g the sum scaled to clip_norm and t the number of this update:
  //   m = beta1 m + (1 - beta1) g,   v = beta2 v + (1 - beta2) g^2
  //   w = w (1 - lr * weight_decay) - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
  // Only parameters with ParameterInfo::decay() decay. The call reads one number back from the
  // device (the norm) and may change `gradients`. Error: a lost rank.
  absl::StatusOr<UpdateResult> Step(double learning_rate, Gradients* gradients);

  // This rank's shards of the parameter's gradient as reduced for the last Step, which has modified
  // them unless it was skipped. Undefined with one rank.
  std::vector<at::Tensor> ReducedGradientShards(const ParameterInfo& info) const;

  // Bytes of optimizer state per parameter of a rank's shard: moments, master copy and reduced
  // gradient. With ZeRO-2 the reduced gradient is not counted, as the rank holds no other gradient.
  static int64_t StateBytes(at::ScalarType weights, int ranks, int zero_stage = 1);

  // Number of updates made (t above).
  int64_t updates() const { return updates_; }
  void set_updates(int64_t updates) { updates_ = updates; }

  // State for checkpoints, each [plan().LocalSize(rank())] fp32. A checkpoint is restored by
  // writing into these tensors in place.
  const at::Tensor& master() const { return master_; }
  const at::Tensor& first_moment() const { return first_moment_; }
  const at::Tensor& second_moment() const { return second_moment_; }
  // Whether the weights are fp32, so that the master copy equals them. After an outside change of
  // the weights, ResetMasterFromWeights copies them into the master copy.
  bool master_is_weights() const;
  void ResetMasterFromWeights();

  const std::shared_ptr<Weights>& weights() const { return weights_; }
  const ZeroShardPlan& plan() const { return plan_; }
  int rank() const { return ranks_ == nullptr ? 0 : ranks_->rank(); }

 private:
  bool alone() const { return plan_.ranks() == 1; }
  // Slices of the state of one bucket's shard.
  struct ShardSlices {
    at::Tensor gradient, master, first_moment, second_moment;
    at::Tensor weights;  // a slice of the model's weights
    at::Tensor decayed;  // marks of decay blocks; undefined without weight decay
  };

  void MarkDecay();
  // This rank's shards of a flat buffer as one tensor; with one rank the buffer itself.
  at::Tensor LocalShard(const at::Tensor& flat) const;
  // Starts the reduction of the buckets from `offset` on whose reduction has not started.
  void StartReduceFrom(int64_t offset, const Gradients& gradients);
  // L2 norm over the shards of all ranks.
  absl::StatusOr<double> Norm(const at::Tensor& local) const;
  // Starts the reductions that OnGradientsReady has not started, and waits for all of them.
  absl::Status FinishReduce(const Gradients& gradients);
  // Updates the state of this rank's shard of a bucket with the gradient times `scale`, then writes
  // the rounded master weights into the model's weights.
  void UpdateShard(double learning_rate, double scale, int64_t bucket, const at::Tensor& g);
  void UpdateWithTorch(double learning_rate, double scale, const ShardSlices& shard);
  void UpdateOnGpu(double learning_rate, double scale, const ShardSlices& shard);

  OptimizerConfig config_;
  std::shared_ptr<Weights> weights_;
  ProcessGroup* const ranks_;
  const ZeroShardPlan plan_;
  at::Tensor gradient_;  // this rank's shard of the reduced gradient; undefined with one rank
  at::Tensor master_;
  at::Tensor first_moment_;
  at::Tensor second_moment_;
  // One byte for each kDecayBlock elements, 1 where decayed; undefined without weight decay.
  at::Tensor decayed_;
  int64_t unreduced_;   // number of leading buckets whose reduction has not started
  int64_t passes_ = 0;  // micro-batches since the last update, if sharded()
  absl::Status reduce_status_;
  int64_t updates_ = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_OPTIMIZER_ADAMW_H_
