#include "rollout/leading_runner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr absl::Duration kGoodbye = absl::Seconds(10);  // for the others to hear of the end
constexpr int kBeats = 4;                               // in the time after which a rank is lost

// Deadlines end a call before this, where they can.
absl::Duration WatchLimit(const RankLinks& links) { return 2 * links.timeout; }

// Names the rank, once.
absl::Status OfRank(int rank, const absl::Status& status) {
  const std::string name = absl::StrCat("rank ", rank, ": ");
  if (status.ok() || absl::StartsWith(status.message(), name)) return status;
  return absl::Status(status.code(), absl::StrCat(name, Message(status)));
}

}  // namespace

LeadingRunner::LeadingRunner(std::unique_ptr<ModelRunner> own, RankLinks links, int pages)
    : ForwardingRunner(std::move(own)),
      links_(std::move(links)),
      pages_(pages),
      watch_("rank 0: a step of generation", WatchLimit(links_)),
      told_(absl::Now()) {
  links_.sum->set_news([this] { return News(); });
  beat_ = std::thread([this] { Beat(); });
}

LeadingRunner::~LeadingRunner() {
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  }
  beat_.join();
  (void)links_.mail->SendToAll(EncodeCommand(StepCommand::kEnd),
                               std::min(links_.timeout, kGoodbye));
  EndRunner();  // uses the links
}

void LeadingRunner::Beat() {
  const absl::Duration interval = links_.timeout / kBeats;
  absl::MutexLock lock(&mutex_);
  while (!mutex_.AwaitWithTimeout(absl::Condition(&ended_), interval)) {
    if (!failure_.ok() || absl::Now() - told_ < interval / 2) continue;
    (void)Noted(Tell(EncodeCommand(StepCommand::kBeat)));
  }
}

absl::Status LeadingRunner::Noted(absl::Status status) {
  failure_.Update(status);
  return status;
}

absl::Status LeadingRunner::Tell(const std::string& text) {
  told_ = absl::Now();
  return links_.mail->SendToAll(text, links_.timeout);
}

absl::Status LeadingRunner::News() {
  ASSIGN_OR_RETURN(const std::optional<Letter> letter, links_.mail->Poll());
  return letter.has_value() ? OfRank(letter->from, DecodeStatus(letter->text)) : absl::OkStatus();
}

absl::Status LeadingRunner::Launch(const ModelStep& step) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(failure_);
  RETURN_IF_ERROR(Noted(News()));
  const CallWatch::Call call(&watch_);
  RETURN_IF_ERROR(Noted(Tell(EncodeLaunch(step))));
  return Noted(runner()->Launch(step));
}

absl::StatusOr<std::vector<TokenDraw>> LeadingRunner::Collect() {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(failure_);
  const CallWatch::Call call(&watch_);
  RETURN_IF_ERROR(Noted(Tell(EncodeCommand(StepCommand::kCollect))));
  absl::StatusOr<std::vector<TokenDraw>> draws = runner()->Collect();
  RETURN_IF_ERROR(Noted(draws.status()));
  return draws;
}

void LeadingRunner::WeightsChanged() {
  absl::MutexLock lock(&mutex_);
  (void)Noted(Tell(EncodeCommand(StepCommand::kWeightsChanged)));
  runner()->WeightsChanged();
}

absl::Status LeadingRunner::Together(StepCommand command,
                                     const std::function<absl::Status()>& here) {
  RETURN_IF_ERROR(failure_);
  RETURN_IF_ERROR(Noted(Tell(EncodeCommand(command))));
  absl::Status status = OfRank(0, here());
  for (int rank = 1; rank < links_.mail->size(); ++rank) {
    const absl::StatusOr<std::string> answer = links_.mail->Receive(rank, links_.timeout);
    RETURN_IF_ERROR(Noted(answer.status()));
    status.Update(OfRank(rank, DecodeStatus(*answer)));
  }
  return status;
}

absl::Status LeadingRunner::ReleaseMemory() {
  absl::MutexLock lock(&mutex_);
  return Together(StepCommand::kReleaseMemory, [this] { return runner()->ReleaseMemory(); });
}

absl::Status LeadingRunner::TakeMemory() {
  absl::MutexLock lock(&mutex_);
  absl::Status taken =
      Together(StepCommand::kTakeMemory, [this] { return runner()->TakeMemory(); });
  if (taken.ok()) return taken;
  // What some have taken others want back with the rest.
  RETURN_IF_ERROR(
      Together(StepCommand::kReleaseMemory, [this] { return runner()->ReleaseMemory(); }));
  return taken;
}

namespace {

absl::Status Do(const StepMessage& message, const RankLinks& links, ModelRunner* runner) {
  const auto answer = [&links](const absl::Status& status) {
    return links.mail->Send(0, EncodeStatus(status), links.timeout);
  };
  switch (message.command()) {
    case StepCommand::kLaunch:
      return runner->Launch(message.step());
    case StepCommand::kCollect:
      return runner->Collect().status();  // rank 0's draws are those that count
    case StepCommand::kWeightsChanged:
      runner->WeightsChanged();
      return absl::OkStatus();
    case StepCommand::kReleaseMemory:
      return answer(runner->ReleaseMemory());
    case StepCommand::kTakeMemory:
      return answer(runner->TakeMemory());
    case StepCommand::kBeat:
    case StepCommand::kEnd:
      return absl::OkStatus();
  }
  return absl::InternalError("a command that nobody knows");
}

// Tells rank 0 and waits until it ends.
absl::Status Report(const absl::Status& status, const RankLinks& links) {
  if (!links.mail->Send(0, EncodeStatus(status), links.timeout).ok()) return status;
  while (true) {
    const absl::StatusOr<std::string> text = links.mail->Receive(0, links.timeout);
    if (!text.ok()) return status;
    const absl::StatusOr<StepMessage> message = StepMessage::Decode(*text);
    if (message.ok() && message->command() == StepCommand::kEnd) return absl::OkStatus();
  }
}

}  // namespace

absl::Status ServeSteps(std::unique_ptr<ModelRunner> runner, const RankLinks& links) {
  CallWatch watch(absl::StrCat("rank ", links.mail->rank(), ": a step of generation"),
                  WatchLimit(links));
  while (true) {
    ASSIGN_OR_RETURN(const std::string text, links.mail->Receive(0, links.timeout));
    const absl::StatusOr<StepMessage> message = StepMessage::Decode(text);
    if (!message.ok()) return Report(message.status(), links);
    if (message->command() == StepCommand::kEnd) return absl::OkStatus();
    absl::Status done;
    {
      const CallWatch::Call call(&watch);
      done = Do(*message, links, runner.get());
    }
    if (!done.ok()) return Report(done, links);
  }
}

}  // namespace tritonrl
