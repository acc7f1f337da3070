#include "rollout/testing/fake_engine.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "rollout/engine/sampler.h"

namespace tritonrl {

absl::Status FakeEngine::Submit(GenerateRequest request) {
  RETURN_IF_ERROR(ValidateSampling(request.sampling));
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  if (updating_) return absl::FailedPreconditionError("a weight update is in progress");
  if (request.prompt.empty()) return absl::InvalidArgumentError("the prompt is empty");
  const std::vector<int32_t>& stop_ids = request.sampling.stop_ids;
  for (int index = request.first_index; index < request.first_index + request.n; ++index) {
    Sample sample;
    sample.request_id = request.id;
    sample.index = index;
    sample.tokens = responder_(request, index);
    const auto stop = std::find_first_of(sample.tokens.begin(), sample.tokens.end(),
                                         stop_ids.begin(), stop_ids.end());
    if (stop != sample.tokens.end()) sample.tokens.erase(stop + 1, sample.tokens.end());
    if (static_cast<int>(sample.tokens.size()) > request.sampling.max_tokens ||
        (stop == sample.tokens.end() &&
         static_cast<int>(sample.tokens.size()) == request.sampling.max_tokens)) {
      sample.tokens.resize(request.sampling.max_tokens);
      sample.finish_reason = FinishReason::kLength;
    }
    sample.log_probs.assign(sample.tokens.size(), log_prob_);
    if (!sample.tokens.empty()) {
      sample.versions = {{weights_version_, static_cast<int64_t>(sample.tokens.size())}};
    }
    if (request.on_token) {
      for (int32_t token : sample.tokens) request.on_token(index, token, log_prob_);
    }
    stats_.generated_tokens += static_cast<int64_t>(sample.tokens.size());
    ++stats_.finished_samples;
    finished_.push_back(std::move(sample));
  }
  stats_.prompt_tokens += static_cast<int64_t>(request.prompt.size());
  requests_.push_back(std::move(request));
  return absl::OkStatus();
}

absl::StatusOr<Sample> FakeEngine::Next(absl::Time) {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  if (finished_.empty()) return absl::OutOfRangeError("no sample is outstanding");
  if (hold_) return absl::DeadlineExceededError("no sample ended in time");
  Sample sample = std::move(finished_.front());
  finished_.pop_front();
  return sample;
}

void FakeEngine::Cancel(uint64_t request_id) {
  absl::MutexLock lock(&mutex_);
  for (Sample& sample : finished_) {
    if (sample.request_id == request_id) sample.finish_reason = FinishReason::kCancelled;
  }
}

void FakeEngine::CancelSample(uint64_t request_id, int index) {
  absl::MutexLock lock(&mutex_);
  for (Sample& sample : finished_) {
    if (sample.request_id == request_id && sample.index == index) {
      sample.finish_reason = FinishReason::kCancelled;
    }
  }
}

int64_t FakeEngine::Outstanding() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(finished_.size());
}

absl::Status FakeEngine::BeginWeightUpdate() {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  updating_ = true;
  return absl::OkStatus();
}

void FakeEngine::EndWeightUpdate(uint64_t version) {
  absl::MutexLock lock(&mutex_);
  updating_ = false;
  weights_version_ = version;
}

EngineStats FakeEngine::Stats() const {
  absl::MutexLock lock(&mutex_);
  return stats_;
}

void FakeEngine::SetLogProb(float log_prob) {
  absl::MutexLock lock(&mutex_);
  log_prob_ = log_prob;
}

void FakeEngine::Hold(bool hold) {
  absl::MutexLock lock(&mutex_);
  hold_ = hold;
}

void FakeEngine::Fail(absl::Status failure) {
  absl::MutexLock lock(&mutex_);
  failure_ = std::move(failure);
}

std::vector<GenerateRequest> FakeEngine::Requests() const {
  absl::MutexLock lock(&mutex_);
  return requests_;
}

}  // namespace tritonrl
