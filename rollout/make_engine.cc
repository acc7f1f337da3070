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
                                                   .batch_invariant = options.batch_invariant});
  }
  if (options.batch_invariant && !(weights->device().is_cpu() && weights->dtype() == at::kFloat)) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch_invariant is for bf16 weights on a GPU, of the sizes that "
                     "rollout/cuda/cuda_runner.h takes, and for fp32 on a CPU; these are ",
                     c10::toString(weights->dtype()), " on ", weights->device().str()));
  }
  return TransformerRunner::Create(std::move(weights), {.max_running = max_running,
                                                        .cache_bytes = options.cache_bytes,
                                                        .max_step_tokens = options.max_step_tokens,
                                                        .max_length = options.max_length,
                                                        .cpu_threads = options.cpu_threads});
}

absl::StatusOr<std::unique_ptr<Engine>> MakeBatchedEngine(std::shared_ptr<Weights> weights,
                                                          const EngineOptions& engine_options,
                                                          const BatchedEngine::Options& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> runner,
                   MakeModelRunner(std::move(weights), engine_options));
  return std::unique_ptr<Engine>(new BatchedEngine(std::move(runner), options));
}

}  // namespace tritonrl
