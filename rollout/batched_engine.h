#ifndef TRITONRL_ROLLOUT_BATCHED_ENGINE_H_
#define TRITONRL_ROLLOUT_BATCHED_ENGINE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rollout/engine.h"
#include "rollout/model_runner.h"
#include "rollout/sampler.h"
#include "rollout/scheduler.h"

namespace tritonrl {

// Continuous batching: each step decodes one token of every running sample; a sample that ends
// leaves at once and a waiting one takes its slot. Runs in a thread of its own.
//
// On the CPU in fp32 a sample's tokens and log-probabilities are the same bit for bit whatever runs
// beside it, with any number of slots and threads. On CUDA, and in other types, matrix products
// may round differently with the batch's size.
class BatchedEngine : public Engine {
 public:
  struct Options {
    // Samples accepted and not yet taken by Next; bounds the memory of requests and results.
    int64_t max_outstanding = 1 << 16;
    // Version that samples carry until the first weight update.
    uint64_t weights_version = 0;
  };

  BatchedEngine(std::unique_ptr<ModelRunner> runner, const Options& options);
  ~BatchedEngine() override;

  absl::Status Submit(GenerateRequest request) override;
  absl::StatusOr<Sample> Next(absl::Time deadline) override;
  void Cancel(uint64_t request_id) override;
  int64_t Outstanding() const override;
  absl::Status BeginWeightUpdate() override;
  void EndWeightUpdate(uint64_t version) override;
  EngineStats Stats() const override;

 private:
  // A request on the engine's thread. std::map keeps groups in the order of their numbers.
  struct Group {
    GenerateRequest request;
    uint64_t weights_version = 0;
    int unfinished = 0;
    std::vector<float> prompt_logits;  // After the prompt, for samples that start later.
  };
  struct Running {
    int64_t group = -1;  // -1: the slot is free.
    Sample sample;
  };

  // Checks that need no lock.
  absl::Status Validate(const GenerateRequest& request) const;

  void Run();
  // Takes what was submitted and cancelled; false when the engine is to stop. Waits if idle.
  bool TakeWork();
  absl::Status Step();
  absl::Status StartSamples();
  absl::Status FillSlots(const std::vector<Scheduler::Admission>& admissions);
  absl::Status DecodeOnce();
  // Draws one token from `logits`; ends the sample if it is the last.
  absl::Status AppendToken(int slot, std::span<const float> logits);
  void End(int slot, FinishReason reason);
  void CancelGroup(int64_t group);
  void Emit(int64_t group, Sample sample);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool NextIsDecided() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;

  // Touched by the engine's thread only.
  std::unique_ptr<ModelRunner> runner_;
  Scheduler scheduler_;
  Sampler sampler_;
  std::map<int64_t, Group> groups_;
  std::map<uint64_t, int64_t> group_of_request_;
  std::vector<Running> slots_;
  int64_t next_group_ = 0;
  // Ended in this step; handed over when the step is done with the weights.
  std::vector<Sample> ended_;
  std::vector<uint64_t> ended_requests_;
  EngineStats step_stats_;  // Of this step.

  mutable absl::Mutex mutex_;
  std::vector<GenerateRequest> submitted_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> cancelled_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> active_requests_ ABSL_GUARDED_BY(mutex_);
  std::deque<Sample> finished_ ABSL_GUARDED_BY(mutex_);
  int64_t outstanding_ ABSL_GUARDED_BY(mutex_) = 0;  // Accepted, not yet taken by Next.
  int64_t unfinished_ ABSL_GUARDED_BY(mutex_) = 0;   // Accepted, not yet ended.
  bool updating_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t weights_version_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  EngineStats stats_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // Last, so that all else is there when it starts.
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_BATCHED_ENGINE_H_
