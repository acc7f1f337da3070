// Runs one generating request to its end and gives its response as a whole or as a stream.
#ifndef TRITONRL_ROLLOUT_SERVE_COMPLETION_HANDLER_H_
#define TRITONRL_ROLLOUT_SERVE_COMPLETION_HANDLER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/tokenizer/tokenizer.h"
#include "nlohmann/json.hpp"
#include "rollout/serve/generation.h"
#include "rollout/serve/metrics.h"
#include "rollout/serve/openai/detokenizer.h"
#include "rollout/serve/openai/response.h"

namespace tritonrl {

struct CompletionSpec {
  CompletionHeader head;
  std::vector<std::string> stop;
  // Tokens that end a completion and are not shown; then those of them that the request itself set.
  std::vector<int32_t> stop_ids;
  std::vector<int32_t> asked_stop_ids;
  int choices = 1;
  // The texts begin with the prompts. EchoWithLogProbs(): with the log-probabilities of their
  // tokens.
  bool echo = false;
  // Number of alternatives of the choices' prompt_logprobs; not set: they have none.
  std::optional<int> prompt_log_probs;
  struct Prompt {
    std::vector<int32_t> ids;
    size_t begin_added = 0;  // Begin tokens that the server put before it, which are not shown.
  };
  std::vector<Prompt> prompts;  // With echo.
  int64_t prompt_tokens = 0;
  bool stream_usage = false;
  absl::Time arrival;
  absl::Time deadline;
  bool EchoWithLogProbs() const { return echo && head.log_probs; }
};

// One thread may use it, for one call of Whole or Stream. Both return Cancelled when the client
// (the peer of `socket`) has disconnected, DeadlineExceeded at the deadline, Internal when the
// model's logits gave no distribution, and the errors of Generation::Take. The destructor cancels
// unfinished choices.
class CompletionHandler {
 public:
  // `metrics` must outlive this.
  CompletionHandler(CompletionSpec spec, const Tokenizer& tokenizer,
                    std::unique_ptr<Generation> generation, Metrics* metrics);
  ~CompletionHandler();

  // Waits for the whole response and returns it.
  absl::StatusOr<nlohmann::json> Whole(int socket);

  // Sends the response's chunks as events with `send`, which returns false when the client has
  // disconnected. An error is sent as an event too.
  absl::Status Stream(int socket, const std::function<bool(const std::string&)>& send);

 private:
  struct Choice {
    IncrementalDetokenizer text;
    std::optional<std::string> finish_reason;
    nlohmann::json stop_reason;
    nlohmann::json prompt_log_probs;  // Not yet sent; only with spec_.prompt_log_probs.
    std::vector<int32_t> token_ids;   // Not yet sent; only with return_token_ids.
    bool begun = false;               // A chunk of the choice was sent.
    bool finish_sent = false;         // Its finish_reason was sent.
    absl::Time first_token = absl::InfinitePast();
    absl::Time last_token;
  };

  // Waits for events of the generation and applies them.
  absl::Status Advance(int socket);
  absl::Status Apply(const TokenEvent& event);
  void ApplyToken(const TokenEvent& event, Choice* choice);
  void ApplyPrompt(const TokenEvent& event, Choice* choice);
  // Begins the text of choice `i` with its prompt. log_probs: of its tokens; may be null.
  void EchoPrompt(int i, const GenerateRequest::PromptLogProbs* log_probs);
  void Finish(Choice* choice, const char* reason);
  // Takes the text and tokens of choice `i` since the last call.
  ChoiceText TakeText(int i);
  absl::Status SendChunks(int socket, const std::function<bool(const std::string&)>& send);
  bool SendNewText(const std::function<bool(const std::string&)>& send);
  TokenUsage Usage() const;

  const CompletionSpec spec_;
  const Tokenizer tokenizer_;
  const std::unique_ptr<Generation> generation_;
  Metrics* const metrics_;
  std::vector<Choice> choices_;
  int open_ = 0;  // Choices without a finish_reason.
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_COMPLETION_HANDLER_H_
