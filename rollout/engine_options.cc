#include "rollout/engine_options.h"

#include "absl/strings/str_cat.h"

namespace tritonrl {

absl::Status CheckSizes(const EngineOptions& options, int most_running, int64_t max_positions) {
  if (options.max_running < 1 || options.max_running > most_running) {
    return absl::InvalidArgumentError(absl::StrCat("max_running is ", options.max_running,
                                                   ", must be in [1, ", most_running, "]"));
  }
  if (options.max_length < 0 || options.max_length > max_positions) {
    return absl::InvalidArgumentError(absl::StrCat("max_length is ", options.max_length,
                                                   ", but the model's max_position_embeddings is ",
                                                   max_positions));
  }
  if (options.cache_bytes < 0 || options.max_step_tokens < 0) {
    return absl::InvalidArgumentError(absl::StrCat("cache_bytes is ", options.cache_bytes,
                                                   " and max_step_tokens ", options.max_step_tokens,
                                                   ", must be 0 (chosen) or more"));
  }
  return absl::OkStatus();
}

}  // namespace tritonrl
