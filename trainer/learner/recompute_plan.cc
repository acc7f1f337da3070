#include "trainer/learner/recompute_plan.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/memory/memory_plan.h"
#include "trainer/optimizer/adamw.h"

namespace tritonrl {
namespace {

constexpr double kGib = 1 << 30;

// `free` is measured after the allocator's unused blocks were returned to the driver.
struct GpuMemory {
  int64_t free = 0;
  int64_t allocated = 0;  // bytes in tensors
};

absl::StatusOr<GpuMemory> ReadGpu(at::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  c10::cuda::CUDACachingAllocator::emptyCache();
  size_t free = 0, total = 0;
  if (const cudaError_t error = cudaMemGetInfo(&free, &total); error != cudaSuccess) {
    return absl::UnavailableError(absl::StrCat("the memory of ", device.str(),
                                               " cannot be read: ", cudaGetErrorString(error)));
  }
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
  return GpuMemory{static_cast<int64_t>(free), stats.allocated_bytes[0].current};
}

ResidentMemory LocalResidentMemory(int zero_stage, const Policy& policy,
                                   const ProcessGroup& ranks) {
  const Weights& weights = *policy.weights;
  StateSharding sharding{
      .element_bytes = static_cast<int64_t>(weights.flat().element_size()),
      .ranks = ranks.size(),
      .zero_stage = ranks.size() > 1 ? zero_stage : 0,
      .state_bytes = AdamW::StateBytes(weights.dtype(), ranks.size(), zero_stage)};
  if (sharding.zero_stage == 2) {
    const GradientRingBuffer ring_buffer =
        GradientRingBufferFor(weights.layout(), policy.config.tie_word_embeddings,
                              ZeroShardPlan::kBucketElements, weights.device());
    // Plus one bucket's reduced gradient before it is added to the sum of the previous
    // micro-batches.
    const int64_t staged =
        std::min(ZeroShardPlan::kBucketElements, ring_buffer.own + ring_buffer.ring);
    sharding.ring_buffer_bytes = ring_buffer.bytes() + 4 * staged / ranks.size();
  }
  return ResidentMemoryForTraining(policy.config, sharding);
}

absl::StatusOr<std::string> PlanLocalRecompute(const RecomputePlanRequest& request,
                                               const Policy& policy, const ProcessGroup& ranks) {
  const Weights& weights = *policy.weights;
  ResidentMemory held = LocalResidentMemory(request.zero_stage, policy, ranks);
  MemoryLimit limit{.bytes = static_cast<int64_t>(request.memory_gib * kGib), .reserve = 0};
  if (weights.device().is_cuda()) {
    ASSIGN_OR_RETURN(const GpuMemory gpu, ReadGpu(weights.device()));
    held.other = std::max<int64_t>(0, gpu.allocated - held.weights);
    if (limit.bytes == 0) limit = {.bytes = gpu.free + gpu.allocated};
  }
  if (limit.bytes == 0) return std::string();
  const GpuOptions& gpu_options = policy.transformer->options().gpu;
  const StepShape step{.tokens = std::max(request.micro_batch_tokens, request.max_sequence_tokens),
                       .max_length = request.max_sequence_tokens,
                       .element_bytes = static_cast<int64_t>(weights.flat().element_size()),
                       .deterministic = gpu_options.attention.deterministic,
                       .per_sequence = AttentionPerSequence(weights.device(), gpu_options),
                       .fp8 = gpu_options.fp8_projections,
                       .fp8_in_hardware = weights.device().is_cuda()};
  ASSIGN_OR_RETURN(const MemoryPlan plan, PlanMemory(policy.config, step, held, limit));
  policy.transformer->set_recompute(plan.layers);
  return DescribePlan(policy.config, step, held, limit, plan);
}

}  // namespace

int64_t TrainingStateBytes(int zero_stage, const Policy& policy, const ProcessGroup& ranks) {
  const ResidentMemory held = LocalResidentMemory(zero_stage, policy, ranks);
  return held.gradients + held.optimizer;
}

absl::StatusOr<std::string> PlanRecompute(const RecomputePlanRequest& request, const Policy& policy,
                                          ProcessGroup* ranks) {
  absl::StatusOr<std::string> text = PlanLocalRecompute(request, policy, *ranks);
  absl::Status status = text.status();
  if (absl::IsResourceExhausted(status)) {
    status = absl::ResourceExhaustedError(absl::StrCat(
        Message(status), " (micro_batch_tokens, the longest sequence and memory_gib)"));
  }
  RETURN_IF_ERROR(ranks->AllReduceStatus(status));
  return text;
}

}  // namespace tritonrl
