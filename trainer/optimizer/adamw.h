// AdamW (Loshchilov & Hutter, "Decoupled weight decay regularization") with fp32 master weights,
// over the flat buffers of model/weights/weights.h: torch's operators on the CPU, one kernel on a
// GPU. With several ranks each keeps and updates its shards of the state (shard_plan.h): ZeRO-1, or
// ZeRO-2 with optimizer.zero_stage 2, where gradients are reduced into the shards through a ring
// buffer (model/weights/gradient_ring_buffer.h). The all-gather of a bucket's weights overlaps the
// update of the next bucket.
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

// The result of one update.
struct UpdateResult {
  double gradient_norm = 0;  // L2 norm over all parameters, before clipping
  bool skipped = false;      // the norm was not finite: nothing was changed
};

// Counts updates skipped in a row. Error, with advice: config.max_consecutive_skipped of them.
absl::Status CountSkippedUpdate(const OptimizerConfig& config, const UpdateResult& result,
                                int* consecutive_skipped);

class AdamW {
 public:
  // Shares `weights` with the transformer and the engine and updates them in place. With fp32
  // weights and one rank they are their own master copy; otherwise the optimizer makes an fp32 copy
  // of this rank's shard. `ranks` must outlive this object; null: one rank. `bucket_elements`: a
  // multiple of kDecayBlock, see ShardPlan.
  AdamW(const OptimizerConfig& config, std::shared_ptr<Weights> weights,
        ProcessGroup* ranks = nullptr, int64_t bucket_elements = ShardPlan::kBucketElements);

  // The layout of gradients for updates: all of them, or a ring buffer if sharded().
  GradientRingBuffer ring_buffer() const;
  // Gradients of zeros with this layout. Throws c10::Error if out of memory.
  Gradients MakeGradients() const { return Gradients(*weights_, ring_buffer()); }
  // Whether gradients are reduced into shards during the backward pass: several ranks and ZeRO-2.
  bool sharded() const { return !alone() && config_.zero_stage() == 2; }

  // With several ranks: gradients from `offset` on in the flat buffer are final, so that the
  // reduction of their buckets starts while the backward pass goes on. Offsets decrease from call
  // to call and are the same on all ranks. Step returns an error of the reduction. If not
  // sharded(): final for the next update; Step reduces the buckets that no call named. If
  // sharded(): final for this micro-batch; the next update takes the sum of all micro-batches.
  // Offset 0 ends a micro-batch. All ranks have the same number of them, at least one.
  void OnGradientsReady(int64_t offset, const Gradients& gradients);
  // If sharded(): called before gradients from `offset` on, up to those that are final, are
  // written. Waits until the reductions that read this part of the ring buffer are done.
  void OnGradientOverwrite(int64_t offset, const Gradients& gradients);

  // One step on the sum of all ranks' gradients, made by all ranks together; weights are the same
  // on all of them afterwards. With g the sum scaled to clip_norm and t the number of this update:
  //   m = beta1 m + (1 - beta1) g,   v = beta2 v + (1 - beta2) g^2
  //   w = w (1 - lr * weight_decay) - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
  // Decay only where ParameterInfo::decay(). Reads one number back from the device (the norm).
  // `gradients` may be changed. Error: a lost rank.
  absl::StatusOr<UpdateResult> Step(double learning_rate, Gradients* gradients);

  // This rank's shards of the parameter's gradient, as reduced for the last Step; undefined with
  // one rank. A step that was not skipped has changed them.
  std::vector<at::Tensor> ReducedGradientShards(const ParameterInfo& info) const;

  // Bytes of state per parameter of its shard that one of `ranks` ranks keeps: moments, master copy
  // and reduced gradient. With ZeRO-2 the reduced gradient is not counted, as it is the only one.
  static int64_t StateBytes(at::ScalarType weights, int ranks, int zero_stage = 1);

  // Number of updates made (t above).
  int64_t updates() const { return updates_; }
  void set_updates(int64_t updates) { updates_ = updates; }

  // State for checkpoints, each [plan().LocalSize(rank())] fp32: writing into it in place is how a
  // checkpoint is restored.
  const at::Tensor& master() const { return master_; }
  const at::Tensor& first_moment() const { return first_moment_; }
  const at::Tensor& second_moment() const { return second_moment_; }
  // Whether the master copy equals the fp32 weights. After the weights were changed from outside,
  // ResetMasterFromWeights makes it again.
  bool master_is_weights() const;
  void ResetMasterFromWeights();

  const std::shared_ptr<Weights>& weights() const { return weights_; }
  const ShardPlan& plan() const { return plan_; }
  int rank() const { return ranks_ == nullptr ? 0 : ranks_->rank(); }

 private:
  bool alone() const { return plan_.ranks() == 1; }
  // Slices of the state of one bucket's shard.
  struct ShardSlices {
    at::Tensor gradient, master, first_moment, second_moment;
    at::Tensor weights;  // a slice of the model's
    at::Tensor decayed;  // marks, or undefined
  };

  void MarkDecay();
  // This rank's shards of a flat buffer as one tensor; with one rank the buffer itself.
  at::Tensor LocalShard(const at::Tensor& flat) const;
  // Starts the reduction of the buckets from `offset` on that it has not started.
  void StartReduceFrom(int64_t offset, const Gradients& gradients);
  // L2 norm over the shards of all ranks.
  absl::StatusOr<double> Norm(const at::Tensor& local) const;
  // Starts the reductions that OnGradientsReady has not started, and waits for all of them.
  absl::Status FinishReduce(const Gradients& gradients);
  // This rank's shard of a bucket, with the gradient times `scale`; its weights as well, rounded.
  void UpdateShard(double learning_rate, double scale, int64_t bucket, const at::Tensor& g);
  void UpdateWithTorch(double learning_rate, double scale, const ShardSlices& shard);
  void UpdateOnGpu(double learning_rate, double scale, const ShardSlices& shard);

  OptimizerConfig config_;
  std::shared_ptr<Weights> weights_;
  ProcessGroup* const ranks_;
  const ShardPlan plan_;
  at::Tensor gradient_;  // this rank's shard of the reduced gradient; undefined with one rank
  at::Tensor master_;
  at::Tensor first_moment_;
  at::Tensor second_moment_;
  // One byte for each kDecayBlock elements, 1 where decayed; undefined without weight decay.
  at::Tensor decayed_;
  int64_t unreduced_;   // the reduction of buckets below this number has not started
  int64_t passes_ = 0;  // micro-batches since the last update, if sharded()
  absl::Status reduce_status_;
  int64_t updates_ = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_OPTIMIZER_ADAMW_H_
