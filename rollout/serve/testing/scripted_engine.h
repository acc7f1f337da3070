// An engine for tests in which the test draws each token and ends each sample itself.
#ifndef TRITONRL_ROLLOUT_SERVE_TESTING_SCRIPTED_ENGINE_H_
#define TRITONRL_ROLLOUT_SERVE_TESTING_SCRIPTED_ENGINE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "rollout/engine/engine.h"

namespace tritonrl {

class ScriptedEngine : public Engine {
 public:
  absl::Status Submit(GenerateRequest request) override {
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
    if (!refusal_.ok()) return refusal_;
    for (int i = 0; i < request.n; ++i) open_.insert({request.id, request.first_index + i});
    outstanding_ += request.n;
    requests_.push_back(std::move(request));
    return absl::OkStatus();
  }

  absl::StatusOr<Sample> Next(absl::Time deadline) override {
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithDeadline(absl::Condition(this, &ScriptedEngine::Decided), deadline);
    if (!failure_.ok()) return failure_;
    if (outstanding_ == 0) return absl::OutOfRangeError("none");
    if (finished_.empty()) return absl::DeadlineExceededError("none yet");
    Sample sample = std::move(finished_.front());
    finished_.pop_front();
    --outstanding_;
    return sample;
  }

  void Cancel(uint64_t request_id) override {
    absl::MutexLock lock(&mutex_);
    cancelled_.insert(request_id);
    const auto open = open_;
    for (const auto& [id, index] : open) {
      if (id == request_id) EndLocked(id, index, FinishReason::kCancelled);
    }
  }

  void CancelSample(uint64_t request_id, int index) override {
    absl::MutexLock lock(&mutex_);
    EndLocked(request_id, index, FinishReason::kCancelled);
  }

  int64_t Outstanding() const override {
    absl::MutexLock lock(&mutex_);
    return outstanding_;
  }
  absl::Status BeginWeightUpdate() override { return absl::OkStatus(); }
  void EndWeightUpdate(uint64_t) override {}
  absl::Status PauseForWeightUpdate(KvPolicy) override { return absl::OkStatus(); }
  EngineStats Stats() const override { return {}; }

  // ---- For the test. Waits have a deadline, after which they return false or an empty request.

  // Waits for the request that is submitted after `before` others.
  GenerateRequest WaitForRequest(size_t before) {
    absl::MutexLock lock(&mutex_);
    const auto there = [this, before]()
                           ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return requests_.size() > before; };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&there), kPatience)) return {};
    return requests_[before];
  }

  // Draws one token; the sample must be open.
  void Draw(const GenerateRequest& request, int index, int32_t token, float log_prob = -1) {
    if (request.on_log_probs) {  // the token is its own best alternative
      auto log_probs = std::make_shared<TokenLogProbs>();
      log_probs->token = {token, log_prob};
      log_probs->rank = 1;
      if (request.top_log_probs > 0) log_probs->top = {log_probs->token};
      request.on_log_probs(index, std::move(log_probs));
    }
    request.on_token(index, token, log_prob);
  }
  void Draw(const GenerateRequest& request, int index, const std::string& bytes) {
    for (const char byte : bytes) Draw(request, index, static_cast<unsigned char>(byte));
  }

  void End(const GenerateRequest& request, int index, FinishReason reason) {
    absl::MutexLock lock(&mutex_);
    EndLocked(request.id, index, reason);
  }

  // Waits until a request is cancelled.
  bool WaitForCancel(const GenerateRequest& request) {
    absl::MutexLock lock(&mutex_);
    const auto there = [this, &request]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return cancelled_.count(request.id) > 0;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&there), kPatience);
  }
  bool IsOpen(const GenerateRequest& request, int index) const {
    absl::MutexLock lock(&mutex_);
    return open_.count({request.id, index}) > 0;
  }

  // From now on Submit and Next return this error, like an engine that ran out of memory.
  void Fail(absl::Status failure) {
    absl::MutexLock lock(&mutex_);
    failure_ = std::move(failure);
  }
  // From now on Submit returns this error.
  void Refuse(absl::Status refusal) {
    absl::MutexLock lock(&mutex_);
    refusal_ = std::move(refusal);
  }

 private:
  static constexpr absl::Duration kPatience = absl::Seconds(60);

  bool Decided() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !finished_.empty() || outstanding_ == 0 || !failure_.ok();
  }
  void EndLocked(uint64_t id, int index, FinishReason reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (open_.erase({id, index}) == 0) return;
    Sample sample;
    sample.request_id = id;
    sample.index = index;
    sample.finish_reason = reason;
    finished_.push_back(std::move(sample));
  }

  mutable absl::Mutex mutex_;
  std::vector<GenerateRequest> requests_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<uint64_t, int>> open_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> cancelled_ ABSL_GUARDED_BY(mutex_);
  std::deque<Sample> finished_ ABSL_GUARDED_BY(mutex_);
  int64_t outstanding_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_TESTING_SCRIPTED_ENGINE_H_
