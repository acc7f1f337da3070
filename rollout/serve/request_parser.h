// Parses and validates the JSON bodies of completion and chat requests.
#ifndef TRITONRL_ROLLOUT_SERVE_REQUEST_PARSER_H_
#define TRITONRL_ROLLOUT_SERVE_REQUEST_PARSER_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/tokenizer/tokenizer.h"
#include "rollout/serve/completion_handler.h"
#include "rollout/serve/generation.h"
#include "rollout/serve/openai/chat_template.h"
#include "rollout/serve/openai/request.h"

namespace tritonrl {

// The model behind the engine.
struct ServedModel {
  std::string name;  // in requests
  Tokenizer tokenizer;
  ChatTemplate chat;
  std::vector<int32_t> stop_ids;  // tokens that end an answer
  // Put before the text of a completion's prompt, if the model was trained with it.
  std::optional<int32_t> begin_token;
  int64_t context = 0;     // most tokens of prompt and answer together
  int64_t vocab_size = 0;  // the model's
};

struct ParsedRequest {
  GenerationParams params;
  CompletionSpec answer;
  GenerationSpec generation;
};

// May be called by several threads.
class RequestParser {
 public:
  struct Limits {
    int max_tokens = 0;      // of an answer; 0: what the context leaves
    absl::Duration timeout;  // from the parsing of a request to its end
  };

  // `start`: part of request ids and of seeds that requests leave out.
  RequestParser(ServedModel model, const Limits& limits, absl::Time start)
      : model_(std::move(model)), limits_(limits), start_(start) {}

  const ServedModel& model() const { return model_; }
  // NotFound for a name other than "" and the model's.
  absl::Status CheckModelName(const std::string& name) const;
  // A completion request, with `chat` a chat request. Errors name the field (FieldError), the model
  // or the context's length.
  absl::StatusOr<ParsedRequest> Parse(bool chat, const std::string& body);

 private:
  // The token ids of all prompts.
  absl::StatusOr<std::vector<std::vector<int32_t>>> ReadPrompts(bool chat, const std::string& body,
                                                                GenerationParams* params) const;
  // Sets the stop tokens and stop strings.
  absl::Status AddStops(const GenerationParams& params, ParsedRequest* parsed) const;
  absl::Status CheckId(const char* field, int32_t id) const;
  // Most tokens that an answer to a prompt of this length may have.
  absl::StatusOr<int> CompletionTokens(size_t prompt_tokens, const GenerationParams& params) const;

  const ServedModel model_;
  const Limits limits_;
  const absl::Time start_;
  std::atomic<uint64_t> next_request_{1};
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_REQUEST_PARSER_H_
