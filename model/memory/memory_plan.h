// Chooses which activations a training step recomputes so that it fits a GPU, before the first
// step, and predicts the step's peak memory.

#ifndef TRITONRL_MODEL_MEMORY_MEMORY_PLAN_H_
#define TRITONRL_MODEL_MEMORY_MEMORY_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/layers/activations.h"
#include "model/memory/step_memory.h"
#include "model/weights/model_config.h"

namespace tritonrl {

// Bytes on one GPU that do not depend on the batch.
struct ResidentMemory {
  int64_t weights = 0;
  int64_t gradients = 0;
  int64_t optimizer = 0;
  int64_t other = 0;  // the generation engine, collectives' buckets, ...

  int64_t total() const { return weights + gradients + optimizer + other; }
};

// How the training state is divided among GPUs.
struct StateSharding {
  int64_t element_bytes = 2;      // of the weights
  int64_t ranks = 1;              // over which the state is sharded
  int zero_stage = 0;             // 1: each rank holds a shard of the optimizer's state; 2: also of
                                  // the gradients, and a ring buffer of those in flight
  int64_t state_bytes = 12;       // optimizer state of a parameter: fp32 weight and two moments
  int64_t ring_buffer_bytes = 0;  // at stage 2: see GradientRingBufferFor
};

// Weights, fp32 gradients and the optimizer's state; `other` stays 0.
ResidentMemory ResidentMemoryForTraining(const ModelConfig& config, const StateSharding& sharding);

// Kept free by default for CUDA's context, the memory of cuDNN and NCCL, and fragmentation of the
// caching allocator. An allowance, not a measurement.
inline constexpr int64_t kDefaultReserve = int64_t{2} << 30;

struct MemoryLimit {
  // GPU memory for this program, resident memory included: the free memory plus the memory that the
  // program has already. 0: no limit.
  int64_t bytes = 0;
  int64_t reserve = kDefaultReserve;  // part of `bytes` that the plan leaves free
};

struct MemoryPlan {
  // For Transformer::set_recompute: one set for each layer.
  std::vector<RecomputeSet> layers;
  int64_t kept_bytes = 0;      // activations of all layers from forward to backward
  StepPeak step;               // the step's peak
  int64_t peak_bytes = 0;      // the step's peak plus resident memory
  double recompute_share = 0;  // predicted share of the step's time that goes into recomputation
};

// The plan that fits with the least time for recomputation. It drops tensors in the order of
// recomputation time per byte, layer by layer from the first (the backward pass soon needs a late
// layer's activations), until the step fits. Then it keeps each tensor again that a later drop made
// unnecessary to drop. ResourceExhausted, with the numbers and the tokens that would fit, if no
// plan fits.
absl::StatusOr<MemoryPlan> PlanMemory(const ModelConfig& config, const StepShape& step,
                                      const ResidentMemory& held, const MemoryLimit& limit);

// Tokens of the largest batch that has a plan, with at most the longest sequence and the target
// rows of `step`; ignores step.tokens. 0 if not even one token fits.
int64_t LargestBatch(const ModelConfig& config, const StepShape& step, const ResidentMemory& held,
                     const MemoryLimit& limit);

// Predicted seconds of the batch's forward and backward without recomputation, and of the
// recomputation of `layers`. The rates are those of an H200 at Qwen3-8B's shapes
// (docs/performance.md). Use them as shares, which are similar on other GPUs.
double StepSeconds(const ModelConfig& config, const StepShape& step);
double RecomputeSeconds(const ModelConfig& config, const StepShape& step,
                        absl::Span<const RecomputeSet> layers);

// Some lines for the start of a program: resident memory, kept and recomputed activations, the
// predicted peak.
std::string DescribePlan(const ModelConfig& config, const StepShape& step,
                         const ResidentMemory& held, const MemoryLimit& limit,
                         const MemoryPlan& plan);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_MEMORY_MEMORY_PLAN_H_
