#include "rollout/cuda/runner_options.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "rollout/cuda/gpu_cache.h"
#include "rollout/cuda/gpu_sampler.h"
#include "rollout/cuda/paged_attention.h"
#include "rollout/cuda/step_layers.h"

namespace tritonrl {
namespace {

constexpr double kCacheShare = 0.9;  // of what is free, at the most

}  // namespace

absl::Status CheckRunnerOptions(const CudaRunner::Options& options, const ModelConfig& config) {
  if (options.max_running < 1 || options.max_running > kMostDraws) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_running is ", options.max_running, ", must be in [1, ", kMostDraws, "]"));
  }
  if (options.max_length < 0 || options.max_length > config.max_positions) {
    return absl::InvalidArgumentError(absl::StrCat("max_length is ", options.max_length,
                                                   ", but the model's max_position_embeddings is ",
                                                   config.max_positions));
  }
  if (options.cache_bytes < 0 || options.max_step_tokens < 0) {
    return absl::InvalidArgumentError(absl::StrCat("cache_bytes is ", options.cache_bytes,
                                                   " and max_step_tokens ", options.max_step_tokens,
                                                   ", must be 0 (chosen) or more"));
  }
  return absl::OkStatus();
}

StepTables::Limits TableLimits(const ModelConfig& config, const CudaRunner::Options& options) {
  return {.slots = options.max_running,
          .max_length = options.max_length,
          .max_tokens = options.max_step_tokens,
          .shape = {.query_heads = static_cast<int>(config.num_heads),
                    .key_heads = static_cast<int>(config.num_kv_heads),
                    .head_dim = static_cast<int>(config.head_dim)},
          .device = CurrentChunkDevice()};
}

int64_t ChosenCacheBytes(const ModelConfig& config, const CudaRunner::Options& options) {
  c10::cuda::CUDACachingAllocator::emptyCache();
  size_t free = 0, total = 0;
  const cudaError_t error = cudaMemGetInfo(&free, &total);
  TORCH_CHECK(error == cudaSuccess, "the GPU's memory: ", cudaGetErrorString(error));
  const StepTables tables(TableLimits(config, options));
  const int64_t others = StepLayers::Bytes(config, tables.max_rows(), tables.max_logits()) +
                         4 * tables.words() + SamplingWorkspaceBytes(kMostDraws, config.vocab_size);
  const int64_t wanted =
      options.max_running * PagesFor(options.max_length) * GpuCache::PageBytes(config);
  return std::min(
      wanted,
      static_cast<int64_t>(kCacheShare * static_cast<double>(static_cast<int64_t>(free) - others)));
}

}  // namespace tritonrl
