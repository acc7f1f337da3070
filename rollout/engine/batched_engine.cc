#include "rollout/engine/batched_engine.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"

// Updates of the weights: what the caller's thread and the engine's own do for one.

namespace tritonrl {

BatchedEngine::BatchedEngine(std::unique_ptr<ModelRunner> runner, const Options& options)
    : options_(options),
      runner_(std::move(runner)),
      scheduler_({.num_pages = runner_->num_pages(),
                  .page_size = runner_->page_size(),
                  .max_num_seqs = runner_->max_num_seqs(),
                  .max_num_batched_tokens = runner_->max_num_batched_tokens(),
                  .enable_prefix_caching = options.enable_prefix_caching,
                  .prefill_budget = options.limit_prefill ? runner_->prefill_budget() : 0,
                  .reserve_max_tokens = runner_->batch_invariant(),
                  .chunk_alignment = runner_->chunk_alignment()}),
      weights_version_(options.weights_version) {
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

absl::Status BatchedEngine::Validate(const GenerateRequest& request) const {
  const std::string name = absl::StrCat("request ", request.id);
  RETURN_IF_ERROR(AddContext(ValidateSampling(request.sampling), name));
  if (request.prompt.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": the prompt is empty"));
  }
  if (request.n < 1 || request.first_index < 0) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": n is ", request.n, " and first_index ",
                                                   request.first_index,
                                                   ", must be at least 1 and 0"));
  }
  const int64_t length = static_cast<int64_t>(request.prompt.size()) + request.sampling.max_tokens;
  if (length > runner_->max_length()) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": prompt of ", request.prompt.size(), " tokens and max_tokens ",
        request.sampling.max_tokens, " exceed the engine's max_length ", runner_->max_length()));
  }
  if (!scheduler_.Fits(static_cast<int64_t>(request.prompt.size()), request.sampling.max_tokens)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": prompt of ", request.prompt.size(), " tokens and max_tokens ",
                     request.sampling.max_tokens, " do not fit the cache of ",
                     int64_t{runner_->num_pages()} * runner_->page_size(),
                     " tokens even alone; lower max_tokens or give the cache more memory"));
  }
  for (int32_t token : request.prompt) {
    if (token < 0 || token >= runner_->vocab_size()) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": prompt token ", token,
                                                     " is outside the model's vocabulary of ",
                                                     runner_->vocab_size()));
    }
  }
  return absl::OkStatus();
}

absl::Status BatchedEngine::Submit(GenerateRequest request) {
  RETURN_IF_ERROR(Validate(request));
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  if (updating_) {
    return absl::FailedPreconditionError(
        absl::StrCat("request ", request.id, ": a weight update is under way"));
  }
  if (outstanding_ + request.n > options_.max_outstanding) {
    return absl::ResourceExhaustedError(
        absl::StrCat("request ", request.id, ": ", outstanding_, " samples are outstanding, with ",
                     request.n, " more than the limit of ", options_.max_outstanding));
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

namespace {

constexpr absl::Duration kWakeRetryInterval = absl::Milliseconds(100);

}  // namespace

absl::Status BatchedEngine::BeginWeightUpdate() {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  if (updating_) return absl::FailedPreconditionError("a weight update is under way already");
  // A step hands its samples over after its last use of the weights, so none unfinished means that
  // the weights are not in use.
  if (unfinished_ > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot update the weights: ", unfinished_, " samples are being generated"));
  }
  // The engine's thread gives the memory back, as it alone calls the runner.
  if (options_.enable_sleep_mode) return AwaitPause(KvPolicy::kInvalidate);
  updating_ = true;
  return absl::OkStatus();
}

absl::Status BatchedEngine::PauseForWeightUpdate(KvPolicy kv_policy) {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  if (updating_) return absl::FailedPreconditionError("a weight update is under way already");
  if (runner_->batch_invariant() && unfinished_ > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot update the weights under the ", unfinished_,
                     " samples that are being generated: what they become would depend on the "
                     "moment, and the engine is batch-invariant"));
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
  runner_->WeightsChanged();  // nothing runs: Begin or Pause has seen to that
  absl::MutexLock lock(&mutex_);
  paused_ = false;
  pause_.reset();
  weights_version_ = version;
  ++updates_;
  // Whoever had the memory meanwhile must not take it from the engine again.
  mutex_.Await(absl::Condition(this, &BatchedEngine::WakeIsDecided));
  updating_ = false;
}

bool BatchedEngine::PauseIsOver() const { return stopping_ || !paused_; }

absl::Status BatchedEngine::Pause() {
  const absl::Time start = absl::Now();
  while (!in_flight_.empty()) RETURN_IF_ERROR(CollectOldest());
  Publish(absl::ToDoubleSeconds(absl::Now() - start));
  KvPolicy kv_policy = KvPolicy::kInvalidate;
  {
    absl::MutexLock lock(&mutex_);
    kv_policy = *pause_;
  }
  // Before the pages are lost nobody refers to them any more.
  if (kv_policy == KvPolicy::kInvalidate) scheduler_.Invalidate();
  const bool release = options_.enable_sleep_mode && kv_policy == KvPolicy::kInvalidate;
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
  while (absl::IsResourceExhausted(taken) && absl::Now() - start < options_.wake_timeout) {
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
