// Before the first training step, chooses the activations to recompute so that the step fits a GPU,
// and predicts the step's peak memory.

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

// The memory on one GPU that does not depend on the batch, in bytes.
struct ResidentMemory {
  int64_t weights = 0;
  int64_t gradients = 0;
  int64_t optimizer = 0;
  int64_t other = 0;  // the generation engine, collectives' buckets, ...

  int64_t total() const { return weights + gradients + optimizer + other; }
};

// The sizes of the training state and how it is sharded over GPUs.
struct StateSharding {
  int64_t element_bytes = 2;      // of the weights
  int64_t ranks = 1;              // over which the state is sharded
  int zero_stage = 0;             // 1: each rank holds a shard of the optimizer's state; 2: also of
                                  // the gradients, and a ring buffer of the gradients in flight
  int64_t state_bytes = 12;       // optimizer state per parameter: fp32 weight and two moments
  int64_t ring_buffer_bytes = 0;  // only at stage 2: see GradientRingBufferFor
};

// Returns the memory of weights, fp32 gradients and optimizer state on one rank; `other` is 0.
ResidentMemory ResidentMemoryForTraining(const ModelConfig& config, const StateSharding& sharding);

// Bytes that a plan leaves free by default for CUDA's context, the memory of cuDNN and NCCL, and
// fragmentation of the caching allocator. An allowance, not a measurement.
inline constexpr int64_t kDefaultReserve = int64_t{2} << 30;

struct MemoryLimit {
  // GPU memory for this program, including resident memory: the free memory plus the memory that
  // the program already holds. 0: no limit.
  int64_t bytes = 0;
  int64_t reserve = kDefaultReserve;  // part of `bytes` that the plan leaves free
};

struct MemoryPlan {
  // One set per layer, for Transformer::set_recompute.
  std::vector<RecomputeSet> layers;
  int64_t kept_bytes = 0;      // activations of all layers, kept from forward to backward
  StepPeak step;               // the step's peak
  int64_t peak_bytes = 0;      // the step's peak plus resident memory
  double recompute_share = 0;  // predicted share of the step's time that goes into recomputation
};

// Returns a plan that fits, chosen for little recomputation time. It drops tensors in the order of
// recomputation time per byte, layer by layer from the first (the backward pass soon needs a late
// layer's activations), until the step fits. Then it restores each dropped tensor without which the
// step still fits. ResourceExhausted if no plan fits; the message has the sizes and the number of
// tokens that would fit.
absl::StatusOr<MemoryPlan> PlanMemory(const ModelConfig& config, const StepShape& step,
                                      const ResidentMemory& held, const MemoryLimit& limit);

// Returns the number of tokens of the largest batch that has a plan; 0 if not even one token fits.
// The longest sequence and the target rows are at most those of `step`; step.tokens is ignored.
int64_t LargestBatch(const ModelConfig& config, const StepShape& step, const ResidentMemory& held,
                     const MemoryLimit& limit);

// Return the predicted seconds of the batch's forward and backward without recomputation, and of
// the recomputation of `layers`. The rates are those of an H200 at Qwen3-8B's shapes
// (docs/performance.md). Only the ratio of the two is meaningful; it is similar on other GPUs.
double StepSeconds(const ModelConfig& config, const StepShape& step);
double RecomputeSeconds(const ModelConfig& config, const StepShape& step,
                        absl::Span<const RecomputeSet> layers);

// Returns the lines that a program prints at its start: resident memory, kept and recomputed
// activations, and the predicted peak.
std::string DescribePlan(const ModelConfig& config, const StepShape& step,
                         const ResidentMemory& held, const MemoryLimit& limit,
                         const MemoryPlan& plan);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_MEMORY_MEMORY_PLAN_H_
