// Builds responses of OpenAI's API: whole ones, and the chunks of a stream.
#ifndef TRITONRL_ROLLOUT_SERVE_OPENAI_RESPONSE_H_
#define TRITONRL_ROLLOUT_SERVE_OPENAI_RESPONSE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/tokenizer/tokenizer.h"
#include "nlohmann/json.hpp"
#include "rollout/engine/engine.h"
#include "rollout/serve/openai/detokenizer.h"

namespace tritonrl {

// Properties common to a response and all its chunks.
struct CompletionHeader {
  bool chat = false;
  std::string id;       // "cmpl-..." or "chatcmpl-..."
  int64_t created = 0;  // Seconds since 1970.
  std::string model;
  bool log_probs = false;  // Whether choices have log-probabilities.
  int top_log_probs = 0;   // Alternatives of each token.
  bool token_ids = false;  // Whether choices have their token ids.
  // With token_ids: the prompts' token ids. Each prompt has `n` choices.
  std::vector<std::vector<int32_t>> prompts;
  int n = 1;
};

// Number of tokens of one request: in its prompts (each once) and in all its completions.
struct TokenUsage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
};

// One completion, or the part that a chunk adds to it.
struct ChoiceText {
  int index = 0;
  TextDelta piece;
  std::optional<std::string> finish_reason;  // "stop" or "length"; absent while unfinished.
  // The stop string, or the id of stop_token_ids, that ended it; else null.
  nlohmann::json stop_reason;
  std::vector<int32_t> token_ids;   // Including tokens without text.
  bool first = true;                // It is the first part of this completion.
  nlohmann::json prompt_log_probs;  // PromptLogProbsJson, if asked for; else null.
};

// vLLM's prompt_logprobs: null for the first token, then for each token an object of the `top` most
// likely tokens and the token itself, {"ID": {"logprob", "rank", "decoded_token"}}.
nlohmann::json PromptLogProbsJson(const Tokenizer& tokenizer,
                                  const GenerateRequest::PromptLogProbs& prompt, int top);

// {"id", "object", "created", "model", "choices", "usage"}. As in vLLM, choices have a stop_reason;
// with head.token_ids they have token_ids, and prompt_token_ids is in each choice of a completion
// (in its first chunk) or at the top level of a chat response (of its first chunk).
// prompt_logprobs, if asked for, is at the same places.
nlohmann::json FullResponse(const CompletionHeader& head, const std::vector<ChoiceText>& choices,
                            const TokenUsage& usage);

// The chunk that opens a chat completion's stream: the delta holds the role and an empty content.
nlohmann::json RoleChunk(const CompletionHeader& head, int index);

// A chunk with more of one completion.
nlohmann::json TextChunk(const CompletionHeader& head, const ChoiceText& choice);

// The last chunk of a stream with include_usage: no choices, but the usage.
nlohmann::json UsageChunk(const CompletionHeader& head, const TokenUsage& usage);

// An event of a stream, "data: <json>\n\n", and the event that ends the stream.
std::string SseEvent(const nlohmann::json& json);
inline constexpr char kSseDone[] = "data: [DONE]\n\n";

// Response to GET /v1/models and of GET /v1/models/NAME.
nlohmann::json ModelList(const std::string& model, int64_t created, int64_t context);
nlohmann::json ModelCard(const std::string& model, int64_t created, int64_t context);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_OPENAI_RESPONSE_H_
