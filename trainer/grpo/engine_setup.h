// Generation engines and sampling settings as the configuration asks for them.
#ifndef TRITONRL_TRAINER_GRPO_ENGINE_SETUP_H_
#define TRITONRL_TRAINER_GRPO_ENGINE_SETUP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "parallel/process_group.h"
#include "rollout/engine/engine.h"
#include "trainer/config/config.pb.h"
#include "trainer/learner/policy.h"

namespace tritonrl {

// What a generation engine needs, apart from the policy.
struct EngineSetup {
  int max_num_seqs = 64;  // most sequences at a time
  int max_prompt_tokens = 512;
  int max_response_tokens = 640;
  double kv_cache_gib = 0;         // 0: as TransformerRunner chooses
  int max_num_batched_tokens = 0;  // likewise
  int num_speculative_tokens = 0;  // SamplingConfig's
  bool batch_invariant = false;
  bool fp8_kv_cache = false, fp8_weights = false;
  bool enable_sleep_mode = false;  // likewise
  int64_t spare_bytes = 0;         // EngineOptions'
  int threads = 0;                 // on the CPU; 0: all
};

// `threads`: CPU threads of the engine.
EngineSetup MakeEngineSetup(const SamplingConfig& sampling, int threads);

// Starts an engine that shares the policy's weights. Error: prompt and response do not fit the
// model's positions. `tensor_parallel_group`: the ranks over which the policy is sharded
// (MakeTensorParallelEngine); null: the policy is whole.
absl::StatusOr<std::unique_ptr<Engine>> StartEngine(const Policy& policy, const EngineSetup& setup,
                                                    ProcessGroup* tensor_parallel_group = nullptr);

// All tokens that end a response.
std::vector<int32_t> StopTokens(const Policy& policy);

// How training draws its samples.
SamplingSettings MakeSamplingSettings(const SamplingConfig& config, const Policy& policy);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_ENGINE_SETUP_H_
