#include "trainer/grpo/engine_setup.h"

#include "absl/strings/str_cat.h"
#include "rollout/distributed/tensor_parallel.h"
#include "rollout/factory/make_engine.h"

namespace tritonrl {

std::vector<int32_t> StopTokens(const Policy& policy) {
  return std::vector<int32_t>(policy.config.eos_token_ids.begin(),
                              policy.config.eos_token_ids.end());
}

absl::StatusOr<std::unique_ptr<Engine>> StartEngine(const Policy& policy,
                                                    const EngineConfig& config,
                                                    const EngineContext& context,
                                                    ProcessGroup* tensor_parallel_group) {
  if (context.max_length > policy.config.max_positions) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_prompt_tokens + max_response_tokens = ", context.max_length, ", but the policy in ",
        policy.folder, " was made for ", policy.config.max_positions,
        " positions (max_position_embeddings); lower one of the two"));
  }
  if (tensor_parallel_group == nullptr) return MakeBatchedEngine(policy.weights, config, context);
  return MakeTensorParallelEngine(policy.weights, config, context, tensor_parallel_group);
}

SamplingSettings MakeSamplingSettings(const SamplingConfig& config, const Policy& policy) {
  SamplingSettings settings;
  settings.temperature = config.temperature();
  settings.top_p = config.top_p();
  settings.top_k = config.top_k();
  settings.max_tokens = config.max_response_tokens();
  settings.stop_ids = StopTokens(policy);
  return settings;
}

}  // namespace tritonrl
