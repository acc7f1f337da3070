#include "rollout/engine/batched_engine.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr absl::Duration kWakeRetryInterval = absl::Milliseconds(100);

}  // namespace

BatchedEngine::BatchedEngine(std::unique_ptr<ModelRunner> runner, const EngineConfig& config,
                             const Limits& limits)
    : config_(config), limits_(limits), runner_(std::move(runner)), core_(runner_.get(), config) {
  stats_.num_pages = runner_->num_pages();
  thread_ = std::thread([this] { Run(); });
}

BatchedEngine::~BatchedEngine() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

absl::Status BatchedEngine::Submit(GenerateRequest request) {
  RETURN_IF_ERROR(core_.Validate(request));
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  if (updating_) {
    return absl::FailedPreconditionError(
        absl::StrCat("request ", request.id, ": a weight update is in progress"));
  }
  if (outstanding_ + request.n > limits_.max_outstanding) {
    return absl::ResourceExhaustedError(
        absl::StrCat("request ", request.id, ": ", outstanding_, " samples are outstanding, with ",
                     request.n, " more than the limit of ", limits_.max_outstanding));
  }
  if (!active_requests_.insert(request.id).second) {
    return absl::InvalidArgumentError(
        absl::StrCat("request ", request.id, ": a request of this id is not finished"));
  }
  outstanding_ += request.n;
  unfinished_ += request.n;
  submitted_.push_back(std::move(request));
  return absl::OkStatus();
}

bool BatchedEngine::NextIsDecided() const {
  return !finished_.empty() || outstanding_ == 0 || !failure_.ok();
}

absl::StatusOr<Sample> BatchedEngine::Next(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  if (!mutex_.AwaitWithDeadline(absl::Condition(this, &BatchedEngine::NextIsDecided), deadline)) {
    return absl::DeadlineExceededError(
        absl::StrCat("no sample ended in time; ", outstanding_, " are outstanding"));
  }
  if (finished_.empty()) {
    if (!failure_.ok()) return failure_;
    return absl::OutOfRangeError("no sample is outstanding");
  }
  Sample sample = std::move(finished_.front());
  finished_.pop_front();
  --outstanding_;
  return sample;
}

void BatchedEngine::Cancel(uint64_t request_id) {
  absl::MutexLock lock(&mutex_);
  if (active_requests_.count(request_id) > 0) cancelled_.push_back({request_id, std::nullopt});
}

void BatchedEngine::CancelSample(uint64_t request_id, int index) {
  absl::MutexLock lock(&mutex_);
  if (active_requests_.count(request_id) > 0) cancelled_.push_back({request_id, index});
}

int64_t BatchedEngine::Outstanding() const {
  absl::MutexLock lock(&mutex_);
  return outstanding_;
}

EngineStats BatchedEngine::Stats() const {
  absl::MutexLock lock(&mutex_);
  return stats_;
}

absl::Status BatchedEngine::BeginWeightUpdate() {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  if (updating_) return absl::FailedPreconditionError("a weight update is in progress already");
  // Samples are published after the last use of the weights: without unfinished samples the weights
  // are not in use.
  if (unfinished_ > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot update the weights: ", unfinished_, " samples are being generated"));
  }
  // Only the engine's thread calls the runner, so it releases the memory.
  if (config_.enable_sleep_mode()) return AwaitPause(KvPolicy::kInvalidate);
  updating_ = true;
  return absl::OkStatus();
}

absl::Status BatchedEngine::PauseForWeightUpdate(KvPolicy kv_policy) {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  if (updating_) return absl::FailedPreconditionError("a weight update is in progress already");
  if (runner_->batch_invariant() && unfinished_ > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot update the weights: ", unfinished_,
                     " samples are being generated, and the engine is batch-invariant: their "
                     "tokens would depend on the time of the update"));
  }
  return AwaitPause(kv_policy);
}

bool BatchedEngine::PauseIsDecided() const { return paused_ || !failure_.ok(); }

absl::Status BatchedEngine::AwaitPause(KvPolicy kv_policy) {
  updating_ = true;
  pause_ = kv_policy;
  mutex_.Await(absl::Condition(this, &BatchedEngine::PauseIsDecided));
  return failure_;
}

bool BatchedEngine::WakeIsDecided() const { return !asleep_ || !failure_.ok(); }

void BatchedEngine::EndWeightUpdate(uint64_t version) {
  runner_->WeightsChanged();  // no step is in flight after Begin or Pause
  absl::MutexLock lock(&mutex_);
  paused_ = false;
  pause_.reset();
  weights_version_ = version;
  ++updates_;
  // The caller must not allocate memory before the engine has its cache again.
  mutex_.Await(absl::Condition(this, &BatchedEngine::WakeIsDecided));
  updating_ = false;
}

void BatchedEngine::Run() {
  while (TakeWork()) {
    const absl::Time start = absl::Now();
    const absl::Status status = pause_next_ ? Pause() : core_.Step();
    // The wait for a weight update does not count as work, and Pause publishes its own results.
    const double seconds = pause_next_ ? 0 : absl::ToDoubleSeconds(absl::Now() - start);
    core_.RecordStepTime(seconds);
    Publish(seconds);
    if (!status.ok()) {
      absl::MutexLock lock(&mutex_);
      failure_ = AddContext(status, "generation engine");
      return;
    }
  }
}

void BatchedEngine::Publish(double seconds) {
  EngineCore::Ended ended = core_.TakeEnded();
  absl::MutexLock lock(&mutex_);
  core_.UpdateStats(seconds, &stats_);
  stats_.finished_samples += std::ssize(ended.samples);
  unfinished_ -= std::ssize(ended.samples);
  for (Sample& sample : ended.samples) {
    stats_.failed_samples += sample.finish_reason == FinishReason::kFailed ? 1 : 0;
    finished_.push_back(std::move(sample));
  }
  for (const uint64_t request : ended.requests) active_requests_.erase(request);
}

bool BatchedEngine::HasWork() const {
  return stopping_ || pause_.has_value() || !submitted_.empty() || !cancelled_.empty();
}

bool BatchedEngine::TakeWork() {
  std::vector<GenerateRequest> submitted;
  std::vector<EngineCore::Cancellation> cancelled;
  int64_t updates = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (!core_.has_groups()) mutex_.Await(absl::Condition(this, &BatchedEngine::HasWork));
    if (stopping_) return false;
    submitted.swap(submitted_);
    cancelled.swap(cancelled_);
    core_.set_weights_version(weights_version_);
    updates = updates_;
    pause_next_ = pause_.has_value();
  }
  if (std::exchange(updates_seen_, updates) != updates) core_.InvalidatePrefixCache();
  for (GenerateRequest& request : submitted) core_.StartGroup(std::move(request));
  for (const EngineCore::Cancellation& cancellation : cancelled) core_.Cancel(cancellation);
  return true;
}

bool BatchedEngine::PauseIsOver() const { return stopping_ || !paused_; }

absl::Status BatchedEngine::Pause() {
  const absl::Time start = absl::Now();
  RETURN_IF_ERROR(core_.CollectAll());
  Publish(absl::ToDoubleSeconds(absl::Now() - start));
  KvPolicy kv_policy = KvPolicy::kInvalidate;
  {
    absl::MutexLock lock(&mutex_);
    kv_policy = *pause_;
  }
  // No sequence may refer to pages that Sleep() discards.
  if (kv_policy == KvPolicy::kInvalidate) core_.Invalidate();
  const bool release = config_.enable_sleep_mode() && kv_policy == KvPolicy::kInvalidate;
  if (release) RETURN_IF_ERROR(Sleep());
  {
    absl::MutexLock lock(&mutex_);
    paused_ = true;
    mutex_.Await(absl::Condition(this, &BatchedEngine::PauseIsOver));
    if (stopping_) return absl::OkStatus();
  }
  return release ? Wake() : absl::OkStatus();
}

absl::Status BatchedEngine::Sleep() {
  const absl::Time start = absl::Now();
  RETURN_IF_ERROR(runner_->Sleep());
  absl::MutexLock lock(&mutex_);
  asleep_ = true;
  stats_.sleep_seconds += absl::ToDoubleSeconds(absl::Now() - start);
  return absl::OkStatus();
}

absl::Status BatchedEngine::Wake() {
  const absl::Time start = absl::Now();
  absl::Status taken = runner_->Wake();
  while (absl::IsResourceExhausted(taken) && absl::Now() - start < limits_.wake_timeout) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kWakeRetryInterval)) break;
    }
    taken = runner_->Wake();
  }
  const absl::Duration passed = absl::Now() - start;
  if (absl::IsResourceExhausted(taken)) {
    return AddContext(taken,
                      absl::StrCat("an update of the weights is over, and in ",
                                   absl::FormatDuration(absl::Trunc(passed, kWakeRetryInterval)),
                                   " the memory that the engine released for it has not "
                                   "become free"));
  }
  RETURN_IF_ERROR(taken);
  absl::MutexLock lock(&mutex_);
  asleep_ = false;
  stats_.wake_seconds += absl::ToDoubleSeconds(passed);
  return absl::OkStatus();
}

}  // namespace tritonrl
