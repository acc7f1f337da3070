// Continuous-batching engine over a paged KV cache.

#ifndef TRITONRL_ROLLOUT_ENGINE_BATCHED_ENGINE_H_
#define TRITONRL_ROLLOUT_ENGINE_BATCHED_ENGINE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rollout/engine/engine.h"
#include "rollout/engine/engine_config.h"
#include "rollout/engine/engine_core.h"
#include "rollout/engine/model_runner.h"

namespace tritonrl {

// Each step decodes one token of every running sample and prefills chunks of prompts. A sample that
// ends leaves the batch at once, and a waiting sample gets its pages and batch slot (see
// Scheduler). EngineCore runs the steps on the engine's thread; this class holds the state that
// other threads share with it.
//
// On the CPU in fp32 the bits of a sample's tokens and log-probabilities do not depend on other
// samples, memory or number of threads. On CUDA, and in other types, GEMMs may round differently
// with the batch's size, unless the runner is batch-invariant: then a sample starts only when
// memory for its maximum length is free, and a weight update is refused until all samples have
// ended.
class BatchedEngine : public Engine {
 public:
  struct Limits {
    // Maximum number of samples accepted and not yet returned by Next; bounds the memory of
    // requests and results.
    int64_t max_outstanding = 1 << 16;
    // How long Wake() is retried while the memory is in use elsewhere; then the engine fails.
    absl::Duration wake_timeout = absl::Seconds(10);
  };

  // `runner` defines all sizes; of `config` this class reads prefix caching, speculative decoding
  // and sleep mode. With sleep mode the KV cache's memory is free from BeginWeightUpdate, or
  // PauseForWeightUpdate with KvPolicy::kInvalidate, to EndWeightUpdate, if the runner can free it.
  BatchedEngine(std::unique_ptr<ModelRunner> runner, const EngineConfig& config,
                const Limits& limits);
  BatchedEngine(std::unique_ptr<ModelRunner> runner, const EngineConfig& config)
      : BatchedEngine(std::move(runner), config, Limits()) {}
  ~BatchedEngine() override;

  absl::Status Submit(GenerateRequest request) override;
  absl::StatusOr<Sample> Next(absl::Time deadline) override;
  void Cancel(uint64_t request_id) override;
  void CancelSample(uint64_t request_id, int index) override;
  int64_t Outstanding() const override;
  absl::Status BeginWeightUpdate() override;
  void EndWeightUpdate(uint64_t version) override;
  absl::Status PauseForWeightUpdate(KvPolicy kv_policy) override;
  EngineStats Stats() const override;

 private:
  // Body of the engine's thread.
  void Run();
  // Passes submitted and cancelled requests to the core; waits if idle. False when the engine
  // stops.
  bool TakeWork();
  // Collects all steps, then waits until the weight update ends, asleep if sleep mode applies.
  // Returns the runner's errors.
  absl::Status Pause();
  absl::Status Sleep();
  absl::Status Wake();
  // Makes ended samples available to Next, and adds `seconds` of work to the statistics.
  void Publish(double seconds);

  // Makes the engine's thread pause; returns once it has paused or the engine has failed.
  absl::Status AwaitPause(KvPolicy kv_policy) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool NextIsDecided() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool PauseIsDecided() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool PauseIsOver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WakeIsDecided() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const EngineConfig config_;
  const Limits limits_;
  const std::unique_ptr<ModelRunner> runner_;
  EngineCore core_;
  // Used by the engine's thread only.
  int64_t updates_seen_ = 0;
  bool pause_next_ = false;  // Pause() replaces the next step

  mutable absl::Mutex mutex_;
  std::vector<GenerateRequest> submitted_ ABSL_GUARDED_BY(mutex_);
  std::vector<EngineCore::Cancellation> cancelled_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> active_requests_ ABSL_GUARDED_BY(mutex_);
  std::deque<Sample> finished_ ABSL_GUARDED_BY(mutex_);
  int64_t outstanding_ ABSL_GUARDED_BY(mutex_) = 0;  // accepted, not yet returned by Next
  int64_t unfinished_ ABSL_GUARDED_BY(mutex_) = 0;   // accepted, not yet ended
  bool updating_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<KvPolicy> pause_ ABSL_GUARDED_BY(mutex_);  // requested, until the update ends
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;            // the weights are not read
  bool asleep_ ABSL_GUARDED_BY(mutex_) = false;            // the cache's memory is freed
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t weights_version_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t updates_ ABSL_GUARDED_BY(mutex_) = 0;  // number of weight updates so far
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  EngineStats stats_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_ENGINE_BATCHED_ENGINE_H_
