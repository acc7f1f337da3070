#include "rollout/make_engine.h"

#include <utility>

#include "base/status.h"
#include "rollout/cuda/cuda_runner.h"
#include "rollout/transformer_runner.h"

namespace tritonrl {
namespace {

constexpr int kOtherRunning = 64;
constexpr int kGpuRunning = 256;

}  // namespace

absl::StatusOr<std::unique_ptr<ModelRunner>> MakeModelRunner(std::shared_ptr<Weights> weights,
                                                             const EngineOptions& options) {
  const bool cuda = CudaRunner::Takes(*weights);
  const int max_running =
      options.max_running != 0 ? options.max_running : (cuda ? kGpuRunning : kOtherRunning);
  if (cuda) {
    return CudaRunner::Create(std::move(weights), {.max_running = max_running,
                                                   .cache_bytes = options.cache_bytes,
                                                   .max_step_tokens = options.max_step_tokens,
                                                   .max_length = options.max_length,
                                                   .ranks = options.ranks});
  }
  return TransformerRunner::Create(std::move(weights), {.max_running = max_running,
                                                        .cache_bytes = options.cache_bytes,
                                                        .max_step_tokens = options.max_step_tokens,
                                                        .max_length = options.max_length,
                                                        .cpu_threads = options.cpu_threads,
                                                        .ranks = options.ranks});
}

absl::StatusOr<std::unique_ptr<Engine>> MakeBatchedEngine(std::shared_ptr<Weights> weights,
                                                          const EngineOptions& engine_options,
                                                          const BatchedEngine::Options& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> runner,
                   MakeModelRunner(std::move(weights), engine_options));
  return std::unique_ptr<Engine>(new BatchedEngine(std::move(runner), options));
}

}  // namespace tritonrl
