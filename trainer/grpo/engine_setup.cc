#include "trainer/grpo/engine_setup.h"

#include "absl/strings/str_cat.h"
#include "rollout/distributed/tensor_parallel.h"
#include "rollout/factory/make_engine.h"

namespace tritonrl {

EngineSetup MakeEngineSetup(const SamplingConfig& sampling, int threads) {
  EngineSetup setup;
  setup.max_num_seqs = sampling.max_num_seqs();
  setup.max_prompt_tokens = sampling.max_prompt_tokens();
  setup.max_response_tokens = sampling.max_response_tokens();
  setup.kv_cache_gib = sampling.kv_cache_gib();
  setup.max_num_batched_tokens = sampling.max_num_batched_tokens();
  setup.num_speculative_tokens = sampling.num_speculative_tokens();
  setup.batch_invariant = sampling.batch_invariant();
  setup.fp8_kv_cache = sampling.fp8_kv_cache();
  setup.fp8_weights = sampling.fp8_weights();
  setup.enable_sleep_mode = sampling.enable_sleep_mode();
  setup.threads = threads;
  return setup;
}

std::vector<int32_t> StopTokens(const Policy& policy) {
  return std::vector<int32_t>(policy.config.eos_token_ids.begin(),
                              policy.config.eos_token_ids.end());
}

absl::StatusOr<std::unique_ptr<Engine>> StartEngine(const Policy& policy, const EngineSetup& setup,
                                                    ProcessGroup* tensor_parallel_group) {
  const int64_t length = setup.max_prompt_tokens + setup.max_response_tokens;
  if (length > policy.config.max_positions) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_prompt_tokens + max_response_tokens = ", length, ", but the policy in ",
                     policy.folder, " was made for ", policy.config.max_positions,
                     " positions (max_position_embeddings); lower one of the two"));
  }
  EngineOptions options;
  options.max_num_seqs = setup.max_num_seqs;
  options.cache_bytes = static_cast<int64_t>(setup.kv_cache_gib * (int64_t{1} << 30));
  options.max_num_batched_tokens = setup.max_num_batched_tokens;
  options.max_length = length;
  options.cpu_threads = setup.threads;
  options.batch_invariant = setup.batch_invariant;
  options.fp8_kv_cache = setup.fp8_kv_cache;
  options.fp8_weights = setup.fp8_weights;
  options.enable_sleep_mode = setup.enable_sleep_mode;
  options.spare_bytes = setup.spare_bytes;
  const BatchedEngine::Options batching = {.num_speculative_tokens = setup.num_speculative_tokens};
  return tensor_parallel_group == nullptr
             ? MakeBatchedEngine(policy.weights, options, batching)
             : MakeTensorParallelEngine(policy.weights, options, batching, tensor_parallel_group);
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
