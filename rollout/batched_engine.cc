#include "rollout/batched_engine.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tritonrl {

BatchedEngine::BatchedEngine(std::unique_ptr<ModelRunner> runner, const Options& options)
    : options_(options),
      runner_(std::move(runner)),
      scheduler_(
          {.num_pages = runner_->num_pages(),
           .page_size = runner_->page_size(),
           .max_running = runner_->max_running(),
           .max_step_tokens = runner_->max_step_tokens(),
           .keep_prefixes = options.keep_prefixes,
           .weights_bound_tokens = options.small_chunks ? runner_->weights_bound_tokens() : 0,
           .reserve_whole_samples = runner_->batch_invariant(),
           .chunk_multiple = runner_->chunk_multiple()}),
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

}  // namespace tritonrl
