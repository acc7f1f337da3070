// What all generating requests of OpenAI's API say about the generation.
#ifndef TRITONRL_ROLLOUT_SERVE_OPENAI_GENERATION_PARAMS_H_
#define TRITONRL_ROLLOUT_SERVE_OPENAI_GENERATION_PARAMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "rollout/serve/openai/api_json.h"

namespace tritonrl {

// Most answers (prompts x n) that one request may ask for.
inline constexpr int64_t kMaxChoices = 1024;

// Most stop strings, and most ids of stop tokens.
inline constexpr size_t kMaxStops = 32;

// What both kinds of requests say about the generation.
struct GenerationParams {
  std::string model;                  // Empty: not given.
  std::optional<int32_t> max_tokens;  // At least 1; max_completion_tokens is the same.
  double temperature = 1.0;           // [0, 100]
  double top_p = 1.0;                 // (0, 1]
  int32_t top_k = 0;                  // 0: all; -1 in a request means that too.
  int32_t n = 1;                      // Answers for each prompt.
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;        // At most kMaxStops, none empty.
  std::vector<int32_t> stop_token_ids;  // At most kMaxStops, beside those of the model.
  bool ignore_eos = false;              // The model's own do not end an answer.
  bool log_probs = false;               // Of the tokens drawn.
  // Alternatives wanted for each token: 0, or 1 at temperature 0, where it is the token itself.
  int32_t top_log_probs = 0;
  bool stream = false;
  bool include_usage = false;     // stream_options.include_usage
  bool return_token_ids = false;  // Those of prompts and answers come beside the texts.
};

// Reads the fields that both kinds of requests have: OpenAI's, and of those that vLLM and SGLang
// add top_k, stop_token_ids, ignore_eos, return_token_ids, and all whose value changes nothing.
// Errors are those of FieldError.
absl::Status ReadGenerationParams(JsonFields* fields, GenerationParams* params);

// Reads a field that says the same as max_tokens; an error if both are there and differ.
absl::Status ReadMaxTokens(JsonFields* fields, const char* name, GenerationParams* params);

// Token ids of a list, not negative. `name` is the field's.
absl::StatusOr<std::vector<int32_t>> ReadIds(const nlohmann::json& list, const std::string& name);

// Sets top_log_probs to what field `name` asks for, or refuses it.
absl::Status CheckAlternatives(const char* name, int64_t wanted, GenerationParams* params);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_OPENAI_GENERATION_PARAMS_H_
