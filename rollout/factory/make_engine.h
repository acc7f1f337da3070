// Makes an engine for given weights, with the runner for their device and type.
#ifndef TRITONRL_ROLLOUT_FACTORY_MAKE_ENGINE_H_
#define TRITONRL_ROLLOUT_FACTORY_MAKE_ENGINE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "model/weights/weights.h"
#include "rollout/engine/batched_engine.h"
#include "rollout/engine/engine.h"
#include "rollout/engine/engine_config.h"
#include "rollout/engine/model_runner.h"

namespace tritonrl {

// The runner of an engine's steps. Shares `weights` and copies nothing: CudaRunner for bf16 weights
// on a GPU of the sizes that it supports, else TransformerRunner. Errors: those of the runner;
// InvalidArgument: batch_invariant, fp8_kv_cache or fp8_weights where no runner supports it.
absl::StatusOr<std::unique_ptr<ModelRunner>> MakeModelRunner(std::shared_ptr<Weights> weights,
                                                             const EngineConfig& config,
                                                             const EngineContext& context = {});

// An engine on such a runner.
absl::StatusOr<std::unique_ptr<Engine>> MakeBatchedEngine(std::shared_ptr<Weights> weights,
                                                          const EngineConfig& config,
                                                          const EngineContext& context = {});

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_FACTORY_MAKE_ENGINE_H_
