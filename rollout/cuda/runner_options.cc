#include "rollout/cuda/runner_options.h"

#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "rollout/cuda/fp8_weights.h"
#include "rollout/cuda/gpu_cache.h"
#include "rollout/cuda/gpu_sampler.h"
#include "rollout/cuda/paged_attention.h"
#include "rollout/cuda/step_layers.h"

namespace tritonrl {
namespace {

constexpr double kCacheShare = 0.9;  // of what is free, at the most

bool HasRowScaledProducts() { return at::cuda::getCurrentDeviceProperties()->major == 9; }

}  // namespace

StepTables::Limits TableLimits(const ModelConfig& config, const CudaRunner::Options& options) {
  return {.slots = options.max_running,
          .max_length = options.max_length,
          .max_tokens = options.max_step_tokens,
          .shape = {.query_heads = static_cast<int>(config.num_heads),
                    .key_heads = static_cast<int>(config.num_kv_heads),
                    .head_dim = static_cast<int>(config.head_dim),
                    .type = CacheTypeOf(options)},
          .device = CurrentChunkDevice(),
          .batch_invariant = options.batch_invariant};
}

CacheType CacheTypeOf(const CudaRunner::Options& options) {
  return options.fp8_cache ? CacheType::kE4M3 : CacheType::kBFloat16;
}

StepLayers::Options LayerOptions(const StepTables& tables, const CudaRunner::Options& options) {
  const auto rows = [&options](int64_t most) {
    const int64_t each = options.batch_invariant ? CudaGemm::kFixedRows : 1;
    return (most + each - 1) / each * each;
  };
  return {.max_rows = rows(tables.max_rows()),
          .max_logits = rows(tables.max_logits()),
          .max_context = options.max_length,
          .chains = options.chains,
          .batch_invariant = options.batch_invariant,
          .cache = CacheTypeOf(options),
          .fp8_weights = options.fp8_weights,
          .ranks = options.ranks};
}

absl::Status CheckOptions(const ModelConfig& config, const CudaRunner::Options& options) {
  if (options.weights_bound_tokens < 0) {
    return absl::InvalidArgumentError(absl::StrCat("weights_bound_tokens is ",
                                                   options.weights_bound_tokens,
                                                   ", must be 0 (no bound) or more"));
  }
  if (options.batch_invariant && options.ranks != nullptr) {
    return absl::InvalidArgumentError(
        "batch_invariant is on, but the model is spread over ranks, whose sums round by the size "
        "of a step; leave one of the two off");
  }
  if (options.fp8_weights && !Fp8Weights::Takes(config)) {
    return absl::InvalidArgumentError(
        "fp8_weights needs sizes of this model's layers to be multiples of 16; leave it off");
  }
  if (options.fp8_weights && !HasRowScaledProducts()) {
    return absl::FailedPreconditionError(
        "fp8_weights needs a GPU of compute capability 9.0 (H100, H200), for which alone cuBLASLt "
        "has products with a factor for each row; leave it off");
  }
  return absl::OkStatus();
}

int64_t ChosenCacheBytes(const ModelConfig& config, const CudaRunner::Options& options) {
  c10::cuda::CUDACachingAllocator::emptyCache();
  size_t free = 0, total = 0;
  const cudaError_t error = cudaMemGetInfo(&free, &total);
  TORCH_CHECK(error == cudaSuccess, "the GPU's memory: ", cudaGetErrorString(error));
  const StepTables tables(TableLimits(config, options));
  const int64_t others =
      StepLayers::Bytes(config, LayerOptions(tables, options)) + 4 * tables.words() +
      SamplingWorkspaceBytes(kMostDraws, config.vocab_size) + options.spare_bytes;
  const int64_t wanted = options.max_running * PagesFor(options.max_length) *
                         GpuCache::PageBytes(config, CacheTypeOf(options));
  return std::min(
      wanted,
      static_cast<int64_t>(kCacheShare * static_cast<double>(static_cast<int64_t>(free) - others)));
}

}  // namespace tritonrl
