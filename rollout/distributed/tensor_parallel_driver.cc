#include "rollout/distributed/tensor_parallel_driver.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {
namespace {

// For the message that ends the workers.
constexpr absl::Duration kShutdownTimeout = absl::Seconds(10);
constexpr int kHeartbeatsPerTimeout = 4;  // within RankChannels::timeout

// Longer than the deadlines of messages, which end a call earlier where they apply.
absl::Duration WatchdogLimit(const RankChannels& links) { return 2 * links.timeout; }

// Puts the rank's name before the message, unless it is there already.
absl::Status WithRank(int rank, const absl::Status& status) {
  const std::string name = absl::StrCat("rank ", rank, ": ");
  if (status.ok() || absl::StartsWith(status.message(), name)) return status;
  return absl::Status(status.code(), absl::StrCat(name, Message(status)));
}

}  // namespace

TensorParallelDriver::TensorParallelDriver(std::unique_ptr<ModelRunner> own, RankChannels links,
                                           int pages)
    : ForwardingRunner(std::move(own)),
      links_(std::move(links)),
      pages_(pages),
      watchdog_("rank 0: a step of generation", WatchdogLimit(links_), links_.clock),
      last_sent_(links_.clock->Now()) {
  links_.collectives->set_error_poll([this] { return PollErrors(); });
  heartbeat_thread_ = std::thread([this] { SendHeartbeats(); });
}

TensorParallelDriver::~TensorParallelDriver() {
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  }
  heartbeat_thread_.join();
  (void)links_.collectives->SendToAll(EncodeCommand(StepCommand::kEnd),
                                      std::min(links_.timeout, kShutdownTimeout));
  EndRunner();  // the runner uses the links
}

void TensorParallelDriver::SendHeartbeats() {
  const absl::Duration interval = links_.timeout / kHeartbeatsPerTimeout;
  absl::MutexLock lock(&mutex_);
  while (!links_.clock->AwaitWithDeadline(&mutex_, absl::Condition(&ended_),
                                          links_.clock->Now() + interval)) {
    if (!failure_.ok() || links_.clock->Now() - last_sent_ < interval / 2) continue;
    (void)RecordError(SendCommand(EncodeCommand(StepCommand::kHeartbeat)));
  }
}

absl::Status TensorParallelDriver::RecordError(absl::Status status) {
  failure_.Update(status);
  return status;
}

absl::Status TensorParallelDriver::SendCommand(const std::string& text) {
  last_sent_ = links_.clock->Now();
  return links_.collectives->SendToAll(text, links_.timeout);
}

absl::Status TensorParallelDriver::PollErrors() {
  ASSIGN_OR_RETURN(const std::optional<RankMessage> message, links_.collectives->Poll());
  return message.has_value() ? WithRank(message->from, DecodeStatus(message->text))
                             : absl::OkStatus();
}

absl::Status TensorParallelDriver::Launch(const ModelStep& step) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(failure_);
  RETURN_IF_ERROR(RecordError(PollErrors()));
  const Watchdog::Call call(&watchdog_);
  RETURN_IF_ERROR(RecordError(SendCommand(EncodeLaunch(step))));
  return RecordError(runner()->Launch(step));
}

absl::StatusOr<std::vector<TokenDraw>> TensorParallelDriver::Collect() {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(failure_);
  const Watchdog::Call call(&watchdog_);
  RETURN_IF_ERROR(RecordError(SendCommand(EncodeCommand(StepCommand::kCollect))));
  absl::StatusOr<std::vector<TokenDraw>> draws = runner()->Collect();
  RETURN_IF_ERROR(RecordError(draws.status()));
  return draws;
}

void TensorParallelDriver::WeightsChanged() {
  absl::MutexLock lock(&mutex_);
  (void)RecordError(SendCommand(EncodeCommand(StepCommand::kWeightsChanged)));
  runner()->WeightsChanged();
}

absl::Status TensorParallelDriver::RunOnAllRanks(StepCommand command,
                                                 const std::function<absl::Status()>& here) {
  RETURN_IF_ERROR(failure_);
  RETURN_IF_ERROR(RecordError(SendCommand(EncodeCommand(command))));
  absl::Status status = WithRank(0, here());
  for (int rank = 1; rank < links_.collectives->size(); ++rank) {
    const absl::StatusOr<std::string> answer = links_.collectives->Receive(rank, links_.timeout);
    RETURN_IF_ERROR(RecordError(answer.status()));
    status.Update(WithRank(rank, DecodeStatus(*answer)));
  }
  return status;
}

absl::Status TensorParallelDriver::SleepAll() {
  // After an error some ranks sleep and others do not.
  return RecordError(RunOnAllRanks(StepCommand::kSleep, [this] { return runner()->Sleep(); }));
}

absl::Status TensorParallelDriver::Sleep() {
  absl::MutexLock lock(&mutex_);
  return SleepAll();
}

absl::Status TensorParallelDriver::Wake() {
  absl::MutexLock lock(&mutex_);
  absl::Status taken = RunOnAllRanks(StepCommand::kWake, [this] { return runner()->Wake(); });
  if (taken.ok()) return taken;
  // Ranks that have allocated their memory free it again, so that all ranks are in the same state.
  RETURN_IF_ERROR(SleepAll());
  return taken;
}

namespace {

absl::Status Execute(const StepMessage& message, const RankChannels& links, ModelRunner* runner) {
  const auto answer = [&links](const absl::Status& status) {
    return links.collectives->Send(0, EncodeStatus(status), links.timeout);
  };
  switch (message.command()) {
    case StepCommand::kLaunch:
      return runner->Launch(message.step());
    case StepCommand::kCollect:
      return runner->Collect().status();  // only rank 0's draws count
    case StepCommand::kWeightsChanged:
      runner->WeightsChanged();
      return absl::OkStatus();
    case StepCommand::kSleep:
      return answer(runner->Sleep());
    case StepCommand::kWake:
      return answer(runner->Wake());
    case StepCommand::kHeartbeat:
    case StepCommand::kEnd:
      return absl::OkStatus();
  }
  return absl::InternalError("unknown command of rank 0");
}

// Reports an error to rank 0, then waits until rank 0 ends.
absl::Status Report(const absl::Status& status, const RankChannels& links) {
  if (!links.collectives->Send(0, EncodeStatus(status), links.timeout).ok()) return status;
  while (true) {
    const absl::StatusOr<std::string> text = links.collectives->Receive(0, links.timeout);
    if (!text.ok()) return status;
    const absl::StatusOr<StepMessage> message = StepMessage::Decode(*text);
    if (message.ok() && message->command() == StepCommand::kEnd) return absl::OkStatus();
  }
}

}  // namespace

absl::Status RunWorkerLoop(std::unique_ptr<ModelRunner> runner, const RankChannels& links) {
  Watchdog watchdog(absl::StrCat("rank ", links.collectives->rank(), ": a step of generation"),
                    WatchdogLimit(links), links.clock);
  while (true) {
    ASSIGN_OR_RETURN(const std::string text, links.collectives->Receive(0, links.timeout));
    const absl::StatusOr<StepMessage> message = StepMessage::Decode(text);
    if (!message.ok()) return Report(message.status(), links);
    if (message->command() == StepCommand::kEnd) return absl::OkStatus();
    absl::Status done;
    {
      const Watchdog::Call call(&watchdog);
      done = Execute(*message, links, runner.get());
    }
    if (!done.ok()) return Report(done, links);
  }
}

}  // namespace tritonrl
