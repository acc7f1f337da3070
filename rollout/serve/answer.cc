#include "rollout/serve/answer.h"

#include <errno.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "rollout/serve/api_error.h"

namespace tritonrl {
namespace {

constexpr int kLongestWaitMs = 3600 * 1000;

absl::Status ClientGone() { return absl::CancelledError("the client has gone"); }

// Waits until `event_fd` is readable. Cancelled when the other side of `socket` has gone,
// DeadlineExceeded at the deadline.
absl::Status WaitForEvents(int event_fd, int socket, absl::Time deadline) {
  while (true) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError("the answer was not finished in the time for a request");
    }
    const int64_t ms = absl::ToInt64Milliseconds(std::min(left, absl::Hours(1)));
    pollfd entries[] = {{event_fd, POLLIN, 0}, {socket, POLLRDHUP, 0}};
    const int ready = poll(entries, 2, static_cast<int>(std::min<int64_t>(ms + 1, kLongestWaitMs)));
    if (ready < 0 && errno != EINTR) return ErrnoStatus(errno, "wait for", "the engine");
    if (ready <= 0) continue;
    if (entries[1].revents != 0) return ClientGone();
    if (entries[0].revents != 0) return absl::OkStatus();
  }
}

}  // namespace

Answer::Answer(AnswerSpec spec, const Tokenizer& tokenizer, std::unique_ptr<Generation> generation,
               Metrics* metrics)
    : spec_(std::move(spec)),
      generation_(std::move(generation)),
      metrics_(metrics),
      open_(spec_.choices) {
  choices_.reserve(spec_.choices);
  for (int i = 0; i < spec_.choices; ++i) {
    choices_.push_back({TextStream(tokenizer, spec_.stop), {}, false, absl::InfinitePast(), {}});
  }
}

Answer::~Answer() {
  const TokenUsage usage = Usage();
  metrics_->CountTokens(usage.prompt_tokens, usage.completion_tokens);
}

TokenUsage Answer::Usage() const {
  TokenUsage usage{spec_.prompt_tokens, 0};
  for (const Choice& choice : choices_) usage.completion_tokens += choice.text.num_tokens();
  return usage;
}

absl::Status Answer::Advance(int socket) {
  RETURN_IF_ERROR(WaitForEvents(generation_->event_fd(), socket, spec_.deadline));
  ASSIGN_OR_RETURN(const std::vector<TokenEvent> events, generation_->Take());
  for (const TokenEvent& event : events) RETURN_IF_ERROR(Apply(event));
  return absl::OkStatus();
}

absl::Status Answer::Apply(const TokenEvent& event) {
  Choice& choice = choices_[event.choice];
  if (choice.finish_reason) return absl::OkStatus();
  if (event.ended) {
    if (event.reason == FinishReason::kCancelled) {
      return absl::UnavailableError("the engine has ended the answer early");
    }
    choice.text.Finish();
    Finish(&choice, FinishReasonName(event.reason));
    return absl::OkStatus();
  }
  if (choice.text.num_tokens() == 0) {
    choice.first_token = event.time;
    metrics_->ObserveFirstToken(event.time - spec_.arrival);
  }
  choice.last_token = event.time;
  choice.text.Push(event.token, event.log_prob);
  if (choice.text.stopped()) {
    generation_->CancelChoice(event.choice);
    Finish(&choice, "stop");
  }
  return absl::OkStatus();
}

void Answer::Finish(Choice* choice, const char* reason) {
  choice->finish_reason = reason;
  --open_;
  const int64_t tokens = choice->text.num_tokens();
  if (tokens > 1) {
    metrics_->ObserveTokenTime((choice->last_token - choice->first_token) / (tokens - 1));
  }
}

absl::StatusOr<nlohmann::json> Answer::Whole(int socket) {
  while (open_ > 0) RETURN_IF_ERROR(Advance(socket));
  std::vector<ChoiceText> texts;
  for (Choice& choice : choices_) {
    texts.push_back({static_cast<int>(texts.size()), choice.text.Take(), choice.finish_reason});
  }
  return WholeAnswer(spec_.head, texts, Usage());
}

absl::Status Answer::Stream(int socket, const std::function<bool(const std::string&)>& send) {
  const absl::Status status = SendChunks(socket, send);
  if (absl::IsCancelled(status)) return status;
  if (!status.ok() && !send(StreamEvent(ErrorJson(status)))) return ClientGone();
  return send(kStreamEnd) ? status : ClientGone();
}

absl::Status Answer::SendChunks(int socket, const std::function<bool(const std::string&)>& send) {
  if (spec_.head.chat) {
    for (int i = 0; i < spec_.choices; ++i) {
      if (!send(StreamEvent(RoleChunk(spec_.head, i)))) return ClientGone();
    }
  }
  while (open_ > 0) {
    RETURN_IF_ERROR(Advance(socket));
    if (!SendNews(send)) return ClientGone();
  }
  if (spec_.stream_usage && !send(StreamEvent(UsageChunk(spec_.head, Usage())))) {
    return ClientGone();
  }
  return absl::OkStatus();
}

bool Answer::SendNews(const std::function<bool(const std::string&)>& send) {
  std::string events;
  for (size_t i = 0; i < choices_.size(); ++i) {
    Choice& choice = choices_[i];
    if (choice.told) continue;
    TextPiece piece = choice.text.Take();
    if (piece.empty() && !choice.finish_reason) continue;
    choice.told = choice.finish_reason.has_value();
    events += StreamEvent(
        TextChunk(spec_.head, {static_cast<int>(i), std::move(piece), choice.finish_reason}));
  }
  return events.empty() || send(events);
}

}  // namespace tritonrl
