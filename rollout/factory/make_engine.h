// An engine for given weights, with the runner that suits where they are.
#ifndef TRITONRL_ROLLOUT_FACTORY_MAKE_ENGINE_H_
#define TRITONRL_ROLLOUT_FACTORY_MAKE_ENGINE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "model/weights/weights.h"
#include "rollout/engine/batched_engine.h"
#include "rollout/engine/engine.h"
#include "rollout/engine/model_runner.h"

namespace tritonrl {

// What runs an engine's steps. Shares `weights` and copies nothing. bf16 weights on a GPU run
// through cuda/cuda_runner.h where it takes them, all others through transformer_runner.h. Errors:
// those of the runner; InvalidArgument: batch_invariant, fp8_kv_cache or fp8_weights where no
// runner has it.
absl::StatusOr<std::unique_ptr<ModelRunner>> MakeModelRunner(std::shared_ptr<Weights> weights,
                                                             const EngineOptions& options);

// `options` with what `engine_options` say of the engine itself; for engines on such a runner that
// are not made below.
BatchedEngine::Options EngineConfigFrom(const EngineOptions& engine_options,
                                        BatchedEngine::Options options);

// An engine on it.
absl::StatusOr<std::unique_ptr<Engine>> MakeBatchedEngine(
    std::shared_ptr<Weights> weights, const EngineOptions& engine_options,
    const BatchedEngine::Options& options = {});

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_FACTORY_MAKE_ENGINE_H_
