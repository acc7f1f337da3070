// Generation parameters that completion and chat requests of OpenAI's API have in common.
#ifndef TRITONRL_ROLLOUT_SERVE_OPENAI_GENERATION_PARAMS_H_
#define TRITONRL_ROLLOUT_SERVE_OPENAI_GENERATION_PARAMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "rollout/engine/engine.h"
#include "rollout/serve/openai/api_json.h"

namespace tritonrl {

// Maximum number of completions (prompts x n) of a request.
inline constexpr int64_t kMaxChoices = 1024;

// Maximum number of stop strings, and of stop token ids.
inline constexpr size_t kMaxStops = 32;

// The generation parameters of a completion or chat request.
struct GenerationParams {
  std::string model;  // Empty: not given.
  // At least 0; max_completion_tokens is the same. 0 only with echo or prompt_log_probs.
  std::optional<int32_t> max_tokens;
  // Temperature in [0, 100], all others in the ranges of SamplingSettings. Its max_tokens and
  // stop_ids are not set. A request may also say top_k=-1 for all.
  SamplingSettings sampling;
  int32_t n = 1;  // Completions for each prompt.
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;        // At most kMaxStops, none empty.
  std::vector<int32_t> stop_token_ids;  // At most kMaxStops, in addition to the model's.
  bool ignore_eos = false;              // The model's own stop tokens do not end a completion.
  // Whether to return log-probabilities of the drawn tokens, under the model's own distribution
  // softmax(logits), whatever the sampling; and the number of alternatives, at most
  // kMaxTopLogProbs.
  bool log_probs = false;
  int32_t top_log_probs = 0;
  // A completion's text begins with the prompt; with log_probs so do its log-probabilities.
  bool echo = false;
  // vLLM's prompt_logprobs: the number of alternatives for each token of the prompt; not set: none.
  std::optional<int32_t> prompt_log_probs;
  bool stream = false;
  bool include_usage = false;  // stream_options.include_usage
  // Return the ids of prompts and completions too. Each id of a completion then has its
  // log-probability.
  bool return_token_ids = false;
};

// Reads the fields that both kinds of requests have: OpenAI's, and of the fields that vLLM and
// SGLang add, top_k, min_p, repetition_penalty, prompt_logprobs, stop_token_ids, ignore_eos,
// return_token_ids, and all whose value has no effect. Errors are those of FieldError.
absl::Status ReadGenerationParams(JsonFields* fields, GenerationParams* params);

// Reads a field that is a synonym of max_tokens; an error if both are present and differ.
absl::Status ReadMaxTokens(JsonFields* fields, const char* name, GenerationParams* params);

// Reads a list of token ids, which must not be negative. `name`: the field's, for errors.
absl::StatusOr<std::vector<int32_t>> ReadIds(const nlohmann::json& list, const std::string& name);

// FieldError if fields about the prompt contradict others: max_tokens=0 with nothing to return, or
// prompt_logprobs in a stream.
absl::Status CheckPromptFields(const GenerationParams& params);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_OPENAI_GENERATION_PARAMS_H_
