#include "rollout/factory/make_engine.h"

#include <utility>

#include "base/status.h"
#include "rollout/cuda/cuda_runner.h"
#include "rollout/engine/transformer_runner.h"

namespace tritonrl {

absl::StatusOr<std::unique_ptr<ModelRunner>> MakeModelRunner(std::shared_ptr<Weights> weights,
                                                             const EngineConfig& config,
                                                             const EngineContext& context) {
  if (CudaRunner::Supports(*weights)) {
    return CudaRunner::Create(std::move(weights), config, context);
  }
  return TransformerRunner::Create(std::move(weights), config, context);
}

absl::StatusOr<std::unique_ptr<Engine>> MakeBatchedEngine(std::shared_ptr<Weights> weights,
                                                          const EngineConfig& config,
                                                          const EngineContext& context) {
  ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> runner,
                   MakeModelRunner(std::move(weights), config, context));
  return std::make_unique<BatchedEngine>(std::move(runner), config);
}

}  // namespace tritonrl
