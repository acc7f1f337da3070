#include "rollout/make_engine.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "rollout/cuda/cuda_runner.h"
#include "rollout/transformer_runner.h"

namespace tritonrl {
namespace {

constexpr int kOtherRunning = 64;
constexpr int kGpuRunning = 256;

// Of the options that are not for every runner, with weights that CudaRunner does not take.
absl::Status CheckOptions(const Weights& weights, const EngineOptions& options) {
  const auto refuse = [&](const char* option, const char* also) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " is for bf16 weights on a GPU, of the sizes that ",
                     "rollout/cuda/cuda_runner.h takes", also, "; these are ",
                     c10::toString(weights.dtype()), " on ", weights.device().str()));
  };
  if (options.fp8_cache) return refuse("fp8_cache", "");
  if (options.fp8_weights) return refuse("fp8_weights", "");
  const bool exact = weights.device().is_cpu() && weights.dtype() == at::kFloat;
  if (options.batch_invariant && !exact) {
    return refuse("batch_invariant", ", and for fp32 on a CPU");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelRunner>> MakeModelRunner(std::shared_ptr<Weights> weights,
                                                             const EngineOptions& options) {
  const bool cuda = CudaRunner::Takes(*weights);
  const int max_running =
      options.max_running != 0 ? options.max_running : (cuda ? kGpuRunning : kOtherRunning);
  if (cuda) {
    return CudaRunner::Create(std::move(weights), {.max_running = max_running,
                                                   .cache_bytes = options.cache_bytes,
                                                   .spare_bytes = options.spare_bytes,
                                                   .max_step_tokens = options.max_step_tokens,
                                                   .max_length = options.max_length,
                                                   .batch_invariant = options.batch_invariant,
                                                   .fp8_cache = options.fp8_cache,
                                                   .fp8_weights = options.fp8_weights,
                                                   .releasable_memory = options.release_memory,
                                                   .ranks = options.ranks});
  }
  RETURN_IF_ERROR(CheckOptions(*weights, options));
  return TransformerRunner::Create(std::move(weights), {.max_running = max_running,
                                                        .cache_bytes = options.cache_bytes,
                                                        .max_step_tokens = options.max_step_tokens,
                                                        .max_length = options.max_length,
                                                        .cpu_threads = options.cpu_threads,
                                                        .ranks = options.ranks});
}

BatchedEngine::Options WithOptionsOf(const EngineOptions& engine_options,
                                     BatchedEngine::Options options) {
  options.release_memory = engine_options.release_memory;
  return options;
}

absl::StatusOr<std::unique_ptr<Engine>> MakeBatchedEngine(std::shared_ptr<Weights> weights,
                                                          const EngineOptions& engine_options,
                                                          const BatchedEngine::Options& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> runner,
                   MakeModelRunner(std::move(weights), engine_options));
  return std::unique_ptr<Engine>(
      new BatchedEngine(std::move(runner), WithOptionsOf(engine_options, options)));
}

}  // namespace tritonrl
