// Requests of OpenAI's API: from JSON to checked structs.
#ifndef TRITONRL_ROLLOUT_SERVE_OPENAI_REQUEST_H_
#define TRITONRL_ROLLOUT_SERVE_OPENAI_REQUEST_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rollout/serve/openai/chat_template.h"
#include "rollout/serve/openai/generation_params.h"

namespace tritonrl {

// POST /v1/completions.
struct CompletionRequest {
  using Prompt = std::variant<std::string, std::vector<int32_t>>;
  GenerationParams params;
  std::vector<Prompt> prompts;  // At least one; texts may be empty, lists of ids are not.
};

// POST /v1/chat/completions.
struct ChatRequest {
  GenerationParams params;
  std::vector<ChatMessage> messages;  // At least one.
  bool enable_thinking = true;        // chat_template_kwargs.enable_thinking
};

// Read a request's body. Any error is InvalidArgument and names the field: wrong type, out of
// range, a field that is not known, or one that would change the answer in a way that this server
// cannot give (accepted where its value changes nothing; null counts as absent everywhere).
absl::StatusOr<CompletionRequest> ParseCompletionRequest(absl::string_view body);
absl::StatusOr<ChatRequest> ParseChatRequest(absl::string_view body);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_OPENAI_REQUEST_H_
