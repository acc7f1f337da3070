#include "rollout/runner_sizes.h"

#include "absl/strings/str_cat.h"

namespace tritonrl {

absl::Status CheckRunnerSizes(const RunnerSizes& sizes, int most_running, int64_t max_positions) {
  if (sizes.max_running < 1 || sizes.max_running > most_running) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_running is ", sizes.max_running, ", must be in [1, ", most_running, "]"));
  }
  if (sizes.max_length < 0 || sizes.max_length > max_positions) {
    return absl::InvalidArgumentError(absl::StrCat("max_length is ", sizes.max_length,
                                                   ", but the model's max_position_embeddings is ",
                                                   max_positions));
  }
  if (sizes.cache_bytes < 0 || sizes.max_step_tokens < 0) {
    return absl::InvalidArgumentError(absl::StrCat("cache_bytes is ", sizes.cache_bytes,
                                                   " and max_step_tokens ", sizes.max_step_tokens,
                                                   ", must be 0 (chosen) or more"));
  }
  return absl::OkStatus();
}

}  // namespace tritonrl
