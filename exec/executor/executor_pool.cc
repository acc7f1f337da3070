#include "exec/executor/executor_pool.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "exec/executor/answer_reader.h"
#include "exec/executor/request_message.h"

namespace tritonrl {

using executor::Answer;
using executor::ExecutorProcess;
using executor::Region;
using executor::Request;

// A candidate on a process of the pool.
class ProcessSession : public ExecutorSession {
 public:
  ProcessSession(ExecutorPool* pool, ExecutorPool::Member member)
      : pool_(*pool), member_(std::move(member)), process_(*member_.process) {}

  ~ProcessSession() override {
    if (process_.ended().ok()) {
      Request request;
      request.mutable_end();
      // Forgetting a candidate takes no longer than its memory takes to go.
      const auto answer = process_.Ask(request, {}, absl::Now() + kTimeToForget);
      if (answer.ok() && answer->kind_case() != Answer::kReady) (void)Unexpected();
      if (answer.ok()) member_.worn = answer->ready().worn();
    }
    process_.inbox().Truncate(0);
    pool_.Return(std::move(member_));
  }

  absl::StatusOr<device::SessionResult> Run(const device::SessionOptions& options,
                                            const SharedMemory* shared, int client) override {
    shared_ = shared;
    UseWindows(options);
    Request request;
    executor::InboxPlacer placer = Placer();
    RETURN_IF_ERROR(executor::WriteOptions(options, &placer, request.mutable_run()));
    replays_begin_ = process_.inbox().end();
    std::vector<int> descriptors = {client};
    if (shared != nullptr) {
      request.mutable_run()->set_has_shared(true);
      descriptors.push_back(shared->fd());
    }
    if (exchange_ != nullptr) {
      descriptors.push_back(exchange_->inputs->fd());
      descriptors.push_back(exchange_->outputs->fd());
    }
    bounds_.calls = options.calls.size();
    bounds_.output_bytes =
        std::min(options.limits.max_output_bytes, options.limits.max_memory_bytes) +
        static_cast<int64_t>(device::kMaxPayloadBytes);  // tensors on the candidate's host
    ASSIGN_OR_RETURN(const Answer answer,
                     process_.Ask(request, descriptors, options.deadline, options.print,
                                  [this](const executor::Handover& m) { return HandOver(m); }));
    if (answer.kind_case() != Answer::kRun) return Unexpected();
    absl::StatusOr<RecordingSummary> recording =
        ReadRecording(answer.run().recording(), options.limits.max_forward_commands);
    if (!recording.ok()) return process_.Distrust(recording.status());
    recording_ = *std::move(recording);
    RETURN_IF_ERROR(executor::ReadStatus(answer));
    bounds_.launches = recording_.launches.size();
    return Checked(executor::ReadSession(answer.run().result(), bounds_, Regions()));
  }

  const RecordingSummary& recording() const override { return recording_; }

  absl::StatusOr<device::ReplayResult> ReplayCall(const ReplayRequest& replay) override {
    Request request;
    process_.inbox().Truncate(replays_begin_);
    executor::InboxPlacer placer = Placer();
    RETURN_IF_ERROR(executor::WriteReplay(replay, &placer, request.mutable_replay()));
    ASSIGN_OR_RETURN(const Answer answer, process_.Ask(request, {}, replay.deadline));
    RETURN_IF_ERROR(executor::ReadStatus(answer));
    if (answer.kind_case() != Answer::kReplay) return Unexpected();
    bounds_.counted = replay.count;
    return Checked(executor::ReadReplayResult(answer.replay(), bounds_, Regions()));
  }

  absl::StatusOr<std::vector<at::Tensor>> ReplayConstructor(uint64_t seed,
                                                            absl::Time deadline) override {
    Request request;
    request.mutable_constructor()->set_seed(seed);
    ASSIGN_OR_RETURN(const Answer answer, process_.Ask(request, {}, deadline));
    RETURN_IF_ERROR(executor::ReadStatus(answer));
    if (answer.kind_case() != Answer::kConstructor) return Unexpected();
    std::vector<at::Tensor> state;
    for (const executor::HostTensor& message : answer.constructor().state()) {
      absl::StatusOr<at::Tensor> tensor = executor::ReadTensor(message, Regions());
      if (!tensor.ok()) return process_.Distrust(tensor.status());
      state.push_back(*std::move(tensor));
    }
    return state;
  }

  absl::StatusOr<std::string> BeginTiming(const ReplayRequest& replay, bool direct) override {
    Request request;
    process_.inbox().Truncate(replays_begin_);
    executor::InboxPlacer placer = Placer();
    executor::BeginTiming* const message = request.mutable_begin_timing();
    RETURN_IF_ERROR(executor::WriteReplay(replay, &placer, message->mutable_replay()));
    message->set_direct(direct);
    ASSIGN_OR_RETURN(const Answer answer, process_.Ask(request, {}, replay.deadline));
    RETURN_IF_ERROR(executor::ReadStatus(answer));
    if (answer.kind_case() != Answer::kBegun) return Unexpected();
    return answer.begun().not_a_graph();
  }

  absl::StatusOr<TimedReplays> TimeReplays(const TimeRequest& timed) override {
    Request request;
    executor::WriteTimeRequest(timed, request.mutable_time());
    ASSIGN_OR_RETURN(const Answer answer, process_.Ask(request, {}, timed.deadline));
    RETURN_IF_ERROR(executor::ReadStatus(answer));
    if (answer.kind_case() != Answer::kTimed) return Unexpected();
    return Checked(executor::ReadTimed(answer.timed(), timed, bounds_, Regions()));
  }

  absl::Status lost() const override {
    return absl::IsAborted(process_.ended()) ? process_.ended() : absl::OkStatus();
  }

 private:
  static constexpr absl::Duration kTimeToForget = absl::Seconds(20);

  // Where contents of answers may lie.
  absl::Span<const Region> Regions() const { return regions_; }

  executor::InboxPlacer Placer() {
    return executor::InboxPlacer(&process_.inbox(), shared_,
                                 exchange_ == nullptr ? nullptr : exchange_->inputs.get());
  }

  void UseWindows(const device::SessionOptions& options) {
    exchange_ = options.exchange;
    if (exchange_ == nullptr) return;
    Region window;
    window.memory = absl::string_view(exchange_->outputs->base(),
                                      static_cast<size_t>(exchange_->outputs->bytes()));
    window.keeps = exchange_;
    window.is_window = true;
    regions_.push_back(std::move(window));
  }

  // Inputs and output of the first live call, then those of the next, and so on.
  absl::Status HandOver(const executor::Handover& message) {
    const size_t call = handed_over_ / 2;
    const bool is_output = handed_over_++ % 2 == 1;
    if (exchange_ == nullptr || message.call() != call || call >= bounds_.calls ||
        message.has_output() != is_output) {
      return Unexpected();
    }
    if (!is_output) return exchange_->provide(call);
    ASSIGN_OR_RETURN(const device::Value output,
                     Checked(executor::ReadOutput(message.output(), bounds_, Regions())));
    return exchange_->take(call, output, message.on_device());
  }

  absl::Status Unexpected() {
    return process_.Distrust(absl::InvalidArgumentError("an answer to another question"));
  }

  // What cannot be read makes the whole process doubtful.
  template <typename T>
  absl::StatusOr<T> Checked(absl::StatusOr<T> read) {
    if (!read.ok()) return process_.Distrust(read.status());
    return read;
  }

  ExecutorPool& pool_;
  ExecutorPool::Member member_;
  ExecutorProcess& process_;
  const SharedMemory* shared_ = nullptr;
  std::shared_ptr<device::Exchange> exchange_;
  std::vector<Region> regions_ = {process_.outbox()};
  size_t handed_over_ = 0;
  uint64_t replays_begin_ = 0;  // in the inbox, behind the inputs of live calls
  RecordingSummary recording_;
  executor::AnswerBounds bounds_;
};

namespace {

constexpr int kMostExecutors = 256;
constexpr int kMostStarters = 4;
constexpr absl::Duration kPause = absl::Seconds(1);  // after a start that failed

}  // namespace

absl::StatusOr<std::unique_ptr<ExecutorPool>> ExecutorPool::Create(
    const ExecutorPoolOptions& options) {
  if (options.count < 1 || options.count > kMostExecutors || options.process.threads < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "executors: ", options.count, " with ", options.process.threads, " threads each; 1 to ",
        kMostExecutors, " with at least one thread are possible"));
  }
  std::unique_ptr<ExecutorPool> pool(new ExecutorPool(options));
  for (int i = 0; i < std::min(options.count, kMostStarters); ++i) {
    pool->starters_.emplace_back([p = pool.get()] { p->Start(); });
  }
  ExecutorPool* const made = pool.get();
  const auto known = [made]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(made->mutex_) {
    return made->counts_.started > 0 || !made->start_error_.ok();
  };
  absl::Status error;
  {
    const absl::MutexLock lock(&pool->mutex_);
    pool->mutex_.Await(absl::Condition(&known));
    if (pool->counts_.started == 0) error = pool->start_error_;
  }
  RETURN_IF_ERROR(error);
  return pool;
}

ExecutorPool::~ExecutorPool() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& starter : starters_) starter.join();
}

void ExecutorPool::Start() {
  // A process gets its death signal when the thread that started it ends, so this one stays.
  const auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || live_ < options_.count;
  };
  const auto stopping = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; };
  while (true) {
    {
      const absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&wanted));
      if (stopping_) return;
      ++live_;
    }
    absl::StatusOr<std::unique_ptr<ExecutorProcess>> process =
        ExecutorProcess::Start(options_.process);
    const absl::MutexLock lock(&mutex_);
    start_error_ = process.status();
    if (process.ok()) {
      ++counts_.started;
      gpu_ = (*process)->gpu();
      free_.push_back({*std::move(process), 0});
      continue;
    }
    --live_;
    Log(LogLevel::kError, absl::StrCat("no executor: ", Message(start_error_)));
    mutex_.AwaitWithTimeout(absl::Condition(&stopping), kPause);
  }
}

absl::StatusOr<std::unique_ptr<ExecutorSession>> ExecutorPool::Acquire(absl::Time deadline) {
  const auto known = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !free_.empty() || (live_ == 0 && !start_error_.ok());
  };
  const absl::MutexLock lock(&mutex_);
  while (true) {
    if (!mutex_.AwaitWithDeadline(absl::Condition(&known), deadline)) {
      return absl::DeadlineExceededError("no executor became free before the deadline");
    }
    if (free_.empty()) return absl::UnavailableError(start_error_.message());
    Member member = std::move(free_.back());
    free_.pop_back();
    if (member.process->alive()) {
      ++member.candidates;
      busy_.push_back(member.process->pid());
      return std::make_unique<ProcessSession>(this, std::move(member));
    }
    --live_;  // it died while it was idle
    ++counts_.lost;
  }
}

void ExecutorPool::Return(Member member) {
  const bool lost = !member.process->ended().ok();
  const bool replaced = !lost && (member.worn || member.candidates >= options_.max_candidates ||
                                  member.process->resident_bytes() > options_.max_resident_bytes);
  const pid_t pid = member.process->pid();
  if (lost || replaced) member.process.reset();
  const absl::MutexLock lock(&mutex_);
  busy_.erase(std::find(busy_.begin(), busy_.end(), pid));
  counts_.lost += lost ? 1 : 0;
  counts_.replaced += replaced ? 1 : 0;
  if (member.process == nullptr) {
    --live_;
  } else {
    free_.push_back(std::move(member));
  }
}

std::optional<device::DeviceDescription> ExecutorPool::gpu() const {
  const absl::MutexLock lock(&mutex_);
  return gpu_;
}

ExecutorPoolCounts ExecutorPool::counts() const {
  const absl::MutexLock lock(&mutex_);
  return counts_;
}

std::vector<pid_t> ExecutorPool::busy() const {
  const absl::MutexLock lock(&mutex_);
  return busy_;
}

}  // namespace tritonrl
