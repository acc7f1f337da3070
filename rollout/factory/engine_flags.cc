#include "rollout/factory/engine_flags.h"

#include "absl/flags/flag.h"
#include "base/status.h"

ABSL_FLAG(int, max_num_seqs, 0,
          "Maximum number of sequences in a batch; 0: 256 for bf16 weights on a GPU, else 64.");
ABSL_FLAG(int64_t, cache_bytes, 0, "Bytes of the KV cache; 0: chosen for the device.");
ABSL_FLAG(int, max_num_batched_tokens, 0,
          "Maximum number of tokens in a step, prefill and decode; 0: 8192 for bf16 weights on a "
          "GPU, else 1024.");
ABSL_FLAG(int, prefill_budget, 256,
          "Prefill budget of a step on a GPU while samples wait; 0: --max_num_batched_tokens.");
ABSL_FLAG(bool, enable_prefix_caching, false,
          "Prefix caching: reuse the KV cache of prompts with a common prefix.");
ABSL_FLAG(int, num_speculative_tokens, 0,
          "Speculative decoding: maximum number of draft tokens per sample and step; 0: off.");
ABSL_FLAG(bool, batch_invariant, false,
          "Batch-invariant kernels: outputs are bitwise independent of the batch. Slower.");
ABSL_FLAG(bool, fp8_kv_cache, false, "FP8 (E4M3) KV cache: twice the tokens in the same memory.");
ABSL_FLAG(bool, fp8_weights, false,
          "FP8 GEMMs on quantized copies of the weights, which add half the weights' memory.");

namespace tritonrl {

void SetEngineFlagDefaults(const EngineConfig& defaults) {
  absl::SetFlag(&FLAGS_max_num_seqs, defaults.max_num_seqs());
  absl::SetFlag(&FLAGS_cache_bytes, defaults.cache_bytes());
  absl::SetFlag(&FLAGS_max_num_batched_tokens, defaults.max_num_batched_tokens());
  absl::SetFlag(&FLAGS_prefill_budget, defaults.prefill_budget());
  absl::SetFlag(&FLAGS_enable_prefix_caching, defaults.enable_prefix_caching());
  absl::SetFlag(&FLAGS_num_speculative_tokens, defaults.num_speculative_tokens());
  absl::SetFlag(&FLAGS_batch_invariant, defaults.batch_invariant());
  absl::SetFlag(&FLAGS_fp8_kv_cache, defaults.fp8_kv_cache());
  absl::SetFlag(&FLAGS_fp8_weights, defaults.fp8_weights());
}

absl::StatusOr<EngineConfig> EngineConfigFromFlags() {
  EngineConfig config;
  config.set_max_num_seqs(absl::GetFlag(FLAGS_max_num_seqs));
  config.set_cache_bytes(absl::GetFlag(FLAGS_cache_bytes));
  config.set_max_num_batched_tokens(absl::GetFlag(FLAGS_max_num_batched_tokens));
  config.set_prefill_budget(absl::GetFlag(FLAGS_prefill_budget));
  config.set_enable_prefix_caching(absl::GetFlag(FLAGS_enable_prefix_caching));
  config.set_num_speculative_tokens(absl::GetFlag(FLAGS_num_speculative_tokens));
  config.set_batch_invariant(absl::GetFlag(FLAGS_batch_invariant));
  config.set_fp8_kv_cache(absl::GetFlag(FLAGS_fp8_kv_cache));
  config.set_fp8_weights(absl::GetFlag(FLAGS_fp8_weights));
  RETURN_IF_ERROR(ValidateEngineConfig(config, "--"));
  return config;
}

}  // namespace tritonrl
