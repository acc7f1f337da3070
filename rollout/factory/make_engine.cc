#include "rollout/factory/make_engine.h"

#include <utility>

#include "base/status.h"
#include "rollout/cuda/cuda_runner.h"
#include "rollout/engine/transformer_runner.h"

namespace tritonrl {

absl::StatusOr<std::unique_ptr<ModelRunner>> MakeModelRunner(std::shared_ptr<Weights> weights,
                                                             const EngineOptions& options) {
  if (CudaRunner::Supports(*weights)) return CudaRunner::Create(std::move(weights), options);
  return TransformerRunner::Create(std::move(weights), options);
}

BatchedEngine::Options EngineConfigFrom(const EngineOptions& engine_options,
                                        BatchedEngine::Options options) {
  options.enable_sleep_mode = engine_options.enable_sleep_mode;
  return options;
}

absl::StatusOr<std::unique_ptr<Engine>> MakeBatchedEngine(std::shared_ptr<Weights> weights,
                                                          const EngineOptions& engine_options,
                                                          const BatchedEngine::Options& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> runner,
                   MakeModelRunner(std::move(weights), engine_options));
  return std::unique_ptr<Engine>(
      new BatchedEngine(std::move(runner), EngineConfigFrom(engine_options, options)));
}

}  // namespace tritonrl
