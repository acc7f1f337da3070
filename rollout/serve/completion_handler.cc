#include "rollout/serve/completion_handler.h"

#include <errno.h>
#include <poll.h>

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "rollout/serve/openai/api_json.h"

namespace tritonrl {
namespace {

constexpr int kMaxWaitMs = 3600 * 1000;

absl::Status ClientGone() { return absl::CancelledError("the client has gone"); }

// Waits until `event_fd` is readable. Cancelled when the peer of `socket` has disconnected,
// DeadlineExceeded at the deadline.
absl::Status WaitForEvents(int event_fd, int socket, absl::Time deadline) {
  while (true) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError("the answer was not finished in the time for a request");
    }
    const int64_t ms = absl::ToInt64Milliseconds(std::min(left, absl::Hours(1)));
    pollfd entries[] = {{event_fd, POLLIN, 0}, {socket, POLLRDHUP, 0}};
    const int ready = poll(entries, 2, static_cast<int>(std::min<int64_t>(ms + 1, kMaxWaitMs)));
    if (ready < 0 && errno != EINTR) return ErrnoStatus(errno, "wait for", "the engine");
    if (ready <= 0) continue;
    if (entries[1].revents != 0) return ClientGone();
    if (entries[0].revents != 0) return absl::OkStatus();
  }
}

bool Holds(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

CompletionHandler::CompletionHandler(CompletionSpec spec, const Tokenizer& tokenizer,
                                     std::unique_ptr<Generation> generation, Metrics* metrics)
    : spec_(std::move(spec)),
      tokenizer_(tokenizer),
      generation_(std::move(generation)),
      metrics_(metrics),
      open_(spec_.choices) {
  choices_.reserve(spec_.choices);
  // Beside ids the log-probabilities must have an entry for each id, special tokens too.
  const bool list_all = spec_.echo || spec_.head.token_ids;
  for (int i = 0; i < spec_.choices; ++i) {
    choices_.push_back(Choice{IncrementalDetokenizer(tokenizer, spec_.stop, list_all)});
    if (spec_.echo && !spec_.EchoWithLogProbs()) EchoPrompt(i, nullptr);
  }
}

void CompletionHandler::EchoPrompt(int i, const GenerateRequest::PromptLogProbs* log_probs) {
  IncrementalDetokenizer& text = choices_[i].text;
  const CompletionSpec::Prompt& prompt = spec_.prompts[i / spec_.head.n];
  for (size_t t = 0; t < prompt.ids.size(); ++t) {
    const bool hidden = t < prompt.begin_added;
    if (t == 0 || log_probs == nullptr) {
      text.PushPrompt(prompt.ids[t], std::nullopt, {}, hidden);
    } else {
      const TokenLogProbs& found = (*log_probs)[t - 1];
      text.PushPrompt(prompt.ids[t], found.token.log_prob, found.top, hidden);
    }
  }
  text.EndPrompt();
}

CompletionHandler::~CompletionHandler() {
  const TokenUsage usage = Usage();
  metrics_->CountTokens(usage.prompt_tokens, usage.completion_tokens);
  for (const Choice& choice : choices_) {
    metrics_->CountCompletion(choice.finish_reason.value_or("cancelled"));
  }
}

TokenUsage CompletionHandler::Usage() const {
  TokenUsage usage{spec_.prompt_tokens, 0};
  for (const Choice& choice : choices_) usage.completion_tokens += choice.text.num_tokens();
  return usage;
}

absl::Status CompletionHandler::Advance(int socket) {
  RETURN_IF_ERROR(WaitForEvents(generation_->event_fd(), socket, spec_.deadline));
  ASSIGN_OR_RETURN(const std::vector<TokenEvent> events, generation_->Take());
  for (const TokenEvent& event : events) RETURN_IF_ERROR(Apply(event));
  return absl::OkStatus();
}

absl::Status CompletionHandler::Apply(const TokenEvent& event) {
  Choice& choice = choices_[event.choice];
  if (choice.finish_reason) return absl::OkStatus();
  if (event.prompt != nullptr) {
    ApplyPrompt(event, &choice);
    return absl::OkStatus();
  }
  if (!event.ended) {
    ApplyToken(event, &choice);
    return absl::OkStatus();
  }
  if (event.reason == FinishReason::kCancelled) {
    return absl::UnavailableError("the engine has ended the answer early");
  }
  if (event.reason == FinishReason::kFailed) {
    choice.finish_reason = FinishReasonName(event.reason);
    return absl::InternalError(absl::StrCat("answer ", event.choice, " failed after ",
                                            choice.text.num_tokens(),
                                            " tokens: ", kLogitsNotFinite));
  }
  choice.text.Finish();
  Finish(&choice, FinishReasonName(event.reason));
  return absl::OkStatus();
}

void CompletionHandler::ApplyPrompt(const TokenEvent& event, Choice* choice) {
  if (spec_.EchoWithLogProbs()) EchoPrompt(event.choice, event.prompt.get());
  if (spec_.prompt_log_probs) {
    choice->prompt_log_probs =
        PromptLogProbsJson(tokenizer_, *event.prompt, *spec_.prompt_log_probs);
  }
}

void CompletionHandler::ApplyToken(const TokenEvent& event, Choice* choice) {
  if (choice->text.num_tokens() == 0) {
    choice->first_token = event.time;
    metrics_->ObserveFirstToken(event.time - spec_.arrival);
  }
  choice->last_token = event.time;
  if (spec_.head.token_ids) choice->token_ids.push_back(event.token);
  const TokenLogProbs* found = event.log_probs.get();
  const float log_prob = found == nullptr ? event.log_prob : found->token.log_prob;
  const std::span<const TokenLogProb> top =
      found == nullptr ? std::span<const TokenLogProb>() : found->top;
  if (Holds(spec_.stop_ids, event.token)) {
    choice->text.PushEnd(event.token, log_prob, top);
    if (Holds(spec_.asked_stop_ids, event.token)) choice->stop_reason = event.token;
    return;
  }
  choice->text.Push(event.token, log_prob, top);
  if (choice->text.stopped()) {
    generation_->CancelChoice(event.choice);
    choice->stop_reason = choice->text.stop_string();
    Finish(choice, "stop");
  }
}

void CompletionHandler::Finish(Choice* choice, const char* reason) {
  choice->finish_reason = reason;
  --open_;
  if (open_ == 0) metrics_->ObserveRequest(absl::Now() - spec_.arrival);
  const int64_t tokens = choice->text.num_tokens();
  if (tokens > 1) {
    metrics_->ObserveTokenTime((choice->last_token - choice->first_token) / (tokens - 1));
  }
}

ChoiceText CompletionHandler::TakeText(int i) {
  Choice& choice = choices_[i];
  return {i,
          choice.text.Take(),
          choice.finish_reason,
          choice.stop_reason,
          std::exchange(choice.token_ids, {}),
          !choice.begun,
          std::exchange(choice.prompt_log_probs, nullptr)};
}

absl::StatusOr<nlohmann::json> CompletionHandler::Whole(int socket) {
  while (open_ > 0) RETURN_IF_ERROR(Advance(socket));
  std::vector<ChoiceText> texts;
  for (int i = 0; i < spec_.choices; ++i) texts.push_back(TakeText(i));
  return FullResponse(spec_.head, texts, Usage());
}

absl::Status CompletionHandler::Stream(int socket,
                                       const std::function<bool(const std::string&)>& send) {
  const absl::Status status = SendChunks(socket, send);
  if (absl::IsCancelled(status)) return status;
  if (!status.ok() && !send(SseEvent(ErrorJson(status)))) return ClientGone();
  return send(kSseDone) ? status : ClientGone();
}

absl::Status CompletionHandler::SendChunks(int socket,
                                           const std::function<bool(const std::string&)>& send) {
  if (spec_.head.chat) {
    for (int i = 0; i < spec_.choices; ++i) {
      if (!send(SseEvent(RoleChunk(spec_.head, i)))) return ClientGone();
    }
  }
  while (open_ > 0) {
    RETURN_IF_ERROR(Advance(socket));
    if (!SendNewText(send)) return ClientGone();
  }
  if (spec_.stream_usage && !send(SseEvent(UsageChunk(spec_.head, Usage())))) {
    return ClientGone();
  }
  return absl::OkStatus();
}

bool CompletionHandler::SendNewText(const std::function<bool(const std::string&)>& send) {
  std::string events;
  for (int i = 0; i < spec_.choices; ++i) {
    Choice& choice = choices_[i];
    if (choice.finish_sent) continue;
    const ChoiceText news = TakeText(i);
    if (news.piece.empty() && news.token_ids.empty() && !news.finish_reason) continue;
    choice.begun = true;
    choice.finish_sent = news.finish_reason.has_value();
    events += SseEvent(TextChunk(spec_.head, news));
  }
  return events.empty() || send(events);
}

}  // namespace tritonrl
