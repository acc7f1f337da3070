// An engine without a model, for tests of code that uses an engine.
#ifndef TRITONRL_ROLLOUT_TESTING_FAKE_ENGINE_H_
#define TRITONRL_ROLLOUT_TESTING_FAKE_ENGINE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rollout/engine/engine.h"

namespace tritonrl {

// Answers requests with prepared tokens; has no thread. Submit generates all samples of a request,
// in the order of their indices, and calls on_token for all their tokens before it returns.
class FakeEngine : public Engine {
 public:
  // Returns the tokens of one sample, which are then cut after the first stop token or at
  // max_tokens. A sample that is shorter and has no stop token still ends with kStop.
  using Responder = std::function<std::vector<int32_t>(const GenerateRequest& request, int index)>;

  explicit FakeEngine(Responder responder) : responder_(std::move(responder)) {}

  absl::Status Submit(GenerateRequest request) override;
  // Never waits: returns OutOfRange if no sample is outstanding, DeadlineExceeded during
  // Hold(true).
  absl::StatusOr<Sample> Next(absl::Time deadline) override;
  // Sets kCancelled on the samples that Next has not returned yet.
  void Cancel(uint64_t request_id) override;
  void CancelSample(uint64_t request_id, int index) override;
  int64_t Outstanding() const override;
  absl::Status BeginWeightUpdate() override;
  void EndWeightUpdate(uint64_t version) override;
  absl::Status PauseForWeightUpdate(KvPolicy) override { return BeginWeightUpdate(); }
  EngineStats Stats() const override;

  // Sets the log-probability of all later tokens; initially -1.
  void SetLogProb(float log_prob);
  // Makes Next return DeadlineExceeded until Hold(false), as if generation took long.
  void Hold(bool hold);
  // Makes Submit, Next and BeginWeightUpdate return this error, as an engine does that failed.
  void Fail(absl::Status failure);
  // All requests accepted so far.
  std::vector<GenerateRequest> Requests() const;

 private:
  const Responder responder_;
  mutable absl::Mutex mutex_;
  std::deque<Sample> finished_ ABSL_GUARDED_BY(mutex_);
  std::vector<GenerateRequest> requests_ ABSL_GUARDED_BY(mutex_);
  float log_prob_ ABSL_GUARDED_BY(mutex_) = -1.0f;
  bool hold_ ABSL_GUARDED_BY(mutex_) = false;
  bool updating_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t weights_version_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  EngineStats stats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_TESTING_FAKE_ENGINE_H_
