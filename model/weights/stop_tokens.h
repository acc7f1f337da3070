// The token ids at which generation with a model folder stops.

#ifndef TRITONRL_MODEL_WEIGHTS_STOP_TOKENS_H_
#define TRITONRL_MODEL_WEIGHTS_STOP_TOKENS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tritonrl {

// Returns eos_token_id of `model_dir`/generation_config.json, if there is one, followed by those of
// config.json, each id once. `transformers` stops at the former; a chat model often names the end
// of a turn only there. Empty if neither file names one. InvalidArgument names the file and the
// field if it is neither a whole number nor a list of them, or below 0.
absl::StatusOr<std::vector<int32_t>> StopTokens(const std::string& model_dir);

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_WEIGHTS_STOP_TOKENS_H_
