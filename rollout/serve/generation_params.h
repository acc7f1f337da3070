// What all generating requests of OpenAI's API say about the generation.
#ifndef TRITONRL_ROLLOUT_SERVE_GENERATION_PARAMS_H_
#define TRITONRL_ROLLOUT_SERVE_GENERATION_PARAMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "rollout/serve/json_fields.h"

namespace tritonrl {

// Most answers (prompts x n) that one request may ask for.
inline constexpr int64_t kMaxChoices = 1024;

// What both kinds of requests say about the generation.
struct GenerationParams {
  std::string model;                  // Empty: not given.
  std::optional<int32_t> max_tokens;  // At least 1; max_completion_tokens is the same.
  double temperature = 1.0;           // [0, 100]
  double top_p = 1.0;                 // (0, 1]
  int32_t top_k = 0;                  // 0: all; -1 in a request means that too.
  int32_t n = 1;                      // Answers for each prompt.
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;  // At most 4, none empty.
  bool log_probs = false;         // Of the tokens drawn.
  // Alternatives wanted for each token: 0, or 1 at temperature 0, where it is the token itself.
  int32_t top_log_probs = 0;
  bool stream = false;
  bool include_usage = false;  // stream_options.include_usage
};

// Reads the fields that both kinds of requests have. Errors are those of FieldError.
absl::Status ReadGenerationParams(JsonFields* fields, GenerationParams* params);

// Reads a field that says the same as max_tokens; an error if both are there and differ.
absl::Status ReadMaxTokens(JsonFields* fields, const char* name, GenerationParams* params);

// Sets top_log_probs to what field `name` asks for, or refuses it.
absl::Status CheckAlternatives(const char* name, int64_t wanted, GenerationParams* params);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_GENERATION_PARAMS_H_
