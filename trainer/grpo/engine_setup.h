// Generation engines and sampling settings as the configuration asks for them.
#ifndef TRITONRL_TRAINER_GRPO_ENGINE_SETUP_H_
#define TRITONRL_TRAINER_GRPO_ENGINE_SETUP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "parallel/process_group.h"
#include "rollout/engine/engine.h"
#include "rollout/engine/engine_config.h"
#include "trainer/config/config.pb.h"
#include "trainer/learner/policy.h"

namespace tritonrl {

// Starts an engine that shares the policy's weights. Error: prompt and response
// (`context.max_length`) do not fit the model's positions. `tensor_parallel_group`: the ranks over
// which the policy is sharded (MakeTensorParallelEngine); null: the policy is whole.
absl::StatusOr<std::unique_ptr<Engine>> StartEngine(const Policy& policy,
                                                    const EngineConfig& config,
                                                    const EngineContext& context,
                                                    ProcessGroup* tensor_parallel_group = nullptr);

// All tokens that end a response.
std::vector<int32_t> StopTokens(const Policy& policy);

// How training draws its samples.
SamplingSettings MakeSamplingSettings(const SamplingConfig& config, const Policy& policy);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_ENGINE_SETUP_H_
