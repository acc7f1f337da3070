#include "rollout/cuda/runner_options.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <algorithm>

#include "rollout/cuda/gpu_cache.h"
#include "rollout/cuda/gpu_sampler.h"
#include "rollout/cuda/paged_attention.h"
#include "rollout/cuda/step_layers.h"

namespace tritonrl {
namespace {

constexpr double kCacheShare = 0.9;  // of what is free, at the most

}  // namespace

StepTables::Limits TableLimits(const ModelConfig& config, const CudaRunner::Options& options) {
  return {.slots = options.max_running,
          .max_length = options.max_length,
          .max_tokens = options.max_step_tokens,
          .shape = {.query_heads = static_cast<int>(config.num_heads),
                    .key_heads = static_cast<int>(config.num_kv_heads),
                    .head_dim = static_cast<int>(config.head_dim)},
          .device = CurrentChunkDevice(),
          .batch_invariant = options.batch_invariant};
}

int64_t ChosenCacheBytes(const ModelConfig& config, const CudaRunner::Options& options) {
  c10::cuda::CUDACachingAllocator::emptyCache();
  size_t free = 0, total = 0;
  const cudaError_t error = cudaMemGetInfo(&free, &total);
  TORCH_CHECK(error == cudaSuccess, "the GPU's memory: ", cudaGetErrorString(error));
  const StepTables tables(TableLimits(config, options));
  const int64_t others =
      StepLayers::Bytes(config, tables.max_rows(), tables.max_logits(), options.batch_invariant) +
      4 * tables.words() + SamplingWorkspaceBytes(kMostDraws, config.vocab_size);
  const int64_t wanted =
      options.max_running * PagesFor(options.max_length) * GpuCache::PageBytes(config);
  return std::min(
      wanted,
      static_cast<int64_t>(kCacheShare * static_cast<double>(static_cast<int64_t>(free) - others)));
}

}  // namespace tritonrl
