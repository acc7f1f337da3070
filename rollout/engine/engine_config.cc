#include "rollout/engine/engine_config.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {

absl::Status ValidateEngineConfig(const EngineConfig& config, absl::string_view prefix) {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  const struct {
    const char* name;
    int64_t value, most;
  } fields[] = {{"max_num_seqs", config.max_num_seqs(), 65536},
                {"cache_bytes", config.cache_bytes(), kAny},
                {"max_num_batched_tokens", config.max_num_batched_tokens(), kAny},
                {"prefill_budget", config.prefill_budget(), kAny},
                {"num_speculative_tokens", config.num_speculative_tokens(), 64}};
  for (const auto& [name, value, most] : fields) {
    if (value >= 0 && value <= most) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(prefix, name, " is ", value, "; it must ",
                     most == kAny ? "be at least 0" : absl::StrCat("lie between 0 and ", most)));
  }
  if (config.num_speculative_tokens() > 0 && config.max_num_seqs() == 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(prefix, "num_speculative_tokens needs ", prefix,
                     "max_num_seqs above 1, as draft tokens take batch slots that samples leave"));
  }
  return absl::OkStatus();
}

absl::Status ResolveEngineConfig(bool cuda, int chunk, int64_t max_positions, EngineConfig* config,
                                 EngineContext* context) {
  RETURN_IF_ERROR(ValidateEngineConfig(*config));
  if (context->max_length < 0 || context->max_length > max_positions) {
    return absl::InvalidArgumentError(absl::StrCat("max_length is ", context->max_length,
                                                   ", but the model's max_position_embeddings is ",
                                                   max_positions));
  }
  if (context->max_length == 0) context->max_length = max_positions;
  if (config->max_num_seqs() == 0) config->set_max_num_seqs(cuda ? 256 : 64);
  if (config->max_num_batched_tokens() == 0) {
    config->set_max_num_batched_tokens(cuda ? 8192 : 1024);
  }
  config->set_max_num_batched_tokens(
      std::max(config->max_num_batched_tokens(), config->max_num_seqs() + chunk));
  return absl::OkStatus();
}

}  // namespace tritonrl
