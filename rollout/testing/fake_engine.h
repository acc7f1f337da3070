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

// For tests of what uses an engine: answers with prepared tokens, without a model or a thread. A
// request's samples end when it is submitted, in the order of their indices; on_token is called for
// all their tokens then.
class FakeEngine : public Engine {
 public:
  // The tokens of one sample. They are cut after the first stop token or at max_tokens; tokens that
  // contain neither end with kStop all the same.
  using Responder = std::function<std::vector<int32_t>(const GenerateRequest& request, int index)>;

  explicit FakeEngine(Responder responder) : responder_(std::move(responder)) {}

  absl::Status Submit(GenerateRequest request) override;
  // Never waits: gives OutOfRange if nothing is there, DeadlineExceeded while Hold(true).
  absl::StatusOr<Sample> Next(absl::Time deadline) override;
  // Samples not yet taken become kCancelled.
  void Cancel(uint64_t request_id) override;
  void CancelSample(uint64_t request_id, int index) override;
  int64_t Outstanding() const override;
  absl::Status BeginWeightUpdate() override;
  void EndWeightUpdate(uint64_t version) override;
  absl::Status PauseForWeightUpdate(KvPolicy) override { return BeginWeightUpdate(); }
  EngineStats Stats() const override;

  // Log-probability that all tokens get; -1 until it is set.
  void SetLogProb(float log_prob);
  // From now on Next gives DeadlineExceeded, as if generation took long (until Hold(false)).
  void Hold(bool hold);
  // From now on every call gives this error, as an engine that ran out of memory does.
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
