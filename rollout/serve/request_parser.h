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
#include "model/chat/chat_template.h"
#include "model/tokenizer/tokenizer.h"
#include "rollout/serve/completion_handler.h"
#include "rollout/serve/generation.h"
#include "rollout/serve/openai/request.h"

namespace tritonrl {

// The model behind the engine.
struct ServedModel {
  std::string name;  // the name in requests
  Tokenizer tokenizer;
  ChatTemplate chat;
  std::vector<int32_t> stop_ids;  // tokens that end a completion
  // The tokens that begin every prompt of a completion: those of tokenizer.json's post_processor.
  std::vector<int32_t> begin_tokens;
  int64_t context = 0;     // maximum number of tokens of prompt and completion together
  int64_t vocab_size = 0;  // number of token ids of the model
};

struct ParsedRequest {
  GenerationParams params;
  CompletionSpec answer;
  GenerationSpec generation;
};

// Thread-safe.
class RequestParser {
 public:
  struct Limits {
    int max_tokens = 0;      // of a completion; 0: limited by the context only
    absl::Duration timeout;  // from the parsing of a request to its end
  };

  // `start`: request ids contain it, and requests without a seed derive their seed from it.
  RequestParser(ServedModel model, const Limits& limits, absl::Time start)
      : model_(std::move(model)), limits_(limits), start_(start) {}

  const ServedModel& model() const { return model_; }
  // NotFound for a name other than "" and the model's.
  absl::Status CheckModelName(const std::string& name) const;
  // Parses a completion request, or with `chat` a chat request. Errors name the field (FieldError),
  // the model or the context's length.
  absl::StatusOr<ParsedRequest> Parse(bool chat, const std::string& body);

 private:
  // The tokens of all prompts.
  absl::StatusOr<std::vector<CompletionSpec::Prompt>> ReadPrompts(bool chat,
                                                                  const std::string& body,
                                                                  GenerationParams* params) const;
  // Sets which log-probabilities the engine computes and the response has.
  static void AddLogProbs(const GenerationParams& params, ParsedRequest* parsed);
  // Sets the stop tokens and stop strings.
  absl::Status AddStops(const GenerationParams& params, ParsedRequest* parsed) const;
  absl::Status CheckId(const char* field, int32_t id) const;
  // Maximum number of tokens of a completion of a prompt of this length.
  absl::StatusOr<int> CompletionTokens(size_t prompt_tokens, const GenerationParams& params) const;

  const ServedModel model_;
  const Limits limits_;
  const absl::Time start_;
  std::atomic<uint64_t> next_request_{1};
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_REQUEST_PARSER_H_
