// What a training step recomputes so that it fits a GPU: chosen from a budget before the first
// step, with the peak that it will have.

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

// Bytes on one GPU that are held whatever the batch is.
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
  int64_t ranks = 1;              // that share what is sharded
  int zero_stage = 0;             // 1: each rank holds a share of the optimizer's state, 2: of the
                                  // gradients as well, and a ring buffer of those in flight
  int64_t state_bytes = 12;       // of the optimizer for a parameter: fp32 weight and two moments
  int64_t ring_buffer_bytes = 0;  // at stage 2: see GradientRingBufferFor
};

// Weights, fp32 gradients and the optimizer's state; `other` stays 0.
ResidentMemory ResidentMemoryForTraining(const ModelConfig& config, const StateSharding& sharding);

// Kept free by default: CUDA's context, cuDNN's and NCCL's own memory, and what the caching
// allocator cannot use between its blocks. An allowance, not a measurement.
inline constexpr int64_t kDefaultReserve = int64_t{2} << 30;

struct MemoryLimit {
  // What this program may take of the GPU, held memory included: before anything is allocated what
  // is free there, later that and what the program has. 0: no limit.
  int64_t bytes = 0;
  int64_t reserve = kDefaultReserve;  // of these, not to be planned with
};

struct MemoryPlan {
  // For Transformer::set_recompute: one set for each layer.
  std::vector<RecomputeSet> layers;
  int64_t kept_bytes = 0;      // activations of all layers from forward to backward
  StepPeak step;               // the most that the step takes at once
  int64_t peak_bytes = 0;      // that with what is held all the time
  double recompute_share = 0;  // predicted share of the step's time for what is recomputed
};

// The plan with the least time for recomputation that fits: tensors are dropped in the order of
// time for a byte, layer by layer from the first (a late layer's activations are needed soon after
// they were made), and no more of them than needed; what a later drop made unnecessary is kept
// after all. ResourceExhausted with the numbers, and the tokens that would fit, if nothing does.
absl::StatusOr<MemoryPlan> PlanMemory(const ModelConfig& config, const StepShape& step,
                                      const ResidentMemory& held, const MemoryLimit& limit);

// The largest batch that has a plan, its longest sequence and target rows no more than those of
// `step`; step.tokens does not matter. 0 if not even one token fits.
int64_t LargestBatch(const ModelConfig& config, const StepShape& step, const ResidentMemory& held,
                     const MemoryLimit& limit);

// Seconds for the forward and backward of the batch with nothing recomputed, and for what such sets
// recompute. Rates are those that an H200 reached at Qwen3-8B's shapes (docs/performance.md); of
// use are the shares, which other GPUs have much alike.
double StepSeconds(const ModelConfig& config, const StepShape& step);
double RecomputeSeconds(const ModelConfig& config, const StepShape& step,
                        absl::Span<const RecomputeSet> layers);

// Some lines for the start of a program: what is held, kept and recomputed, the predicted peak.
std::string DescribePlan(const ModelConfig& config, const StepShape& step,
                         const ResidentMemory& held, const MemoryLimit& limit,
                         const MemoryPlan& plan);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_MEMORY_MEMORY_PLAN_H_
