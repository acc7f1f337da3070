// Parses requests of OpenAI's API from JSON into validated structs.
#ifndef TRITONRL_ROLLOUT_SERVE_OPENAI_REQUEST_H_
#define TRITONRL_ROLLOUT_SERVE_OPENAI_REQUEST_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/chat/chat_template.h"
#include "rollout/serve/openai/generation_params.h"

namespace tritonrl {

// POST /v1/completions.
struct CompletionRequest {
  using Prompt = std::variant<std::string, std::vector<int32_t>>;
  GenerationParams params;
  std::vector<Prompt> prompts;  // At least one. A text may be empty, a list of ids may not.
};

// POST /v1/chat/completions.
struct ChatRequest {
  GenerationParams params;
  std::vector<ChatMessage> messages;  // At least one.
  std::string template_arguments;     // chat_template_kwargs as JSON; empty: none
};

// Parse a request's body. Every error is InvalidArgument and names the field: a wrong type, a value
// out of range, an unknown field, or a field with an effect that this server does not support
// (accepted if its value has no effect; null always counts as absent).
absl::StatusOr<CompletionRequest> ParseCompletionRequest(absl::string_view body);
absl::StatusOr<ChatRequest> ParseChatRequest(absl::string_view body);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_OPENAI_REQUEST_H_
