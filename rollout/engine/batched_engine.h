#ifndef TRITONRL_ROLLOUT_ENGINE_BATCHED_ENGINE_H_
#define TRITONRL_ROLLOUT_ENGINE_BATCHED_ENGINE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rollout/engine/engine.h"
#include "rollout/engine/model_runner.h"
#include "rollout/engine/sampler.h"
#include "rollout/scheduler/scheduler.h"
#include "rollout/speculative/speculation.h"

namespace tritonrl {

// Continuous batching over a paged cache: each step decodes one token of every running sample and
// takes chunks of prompts beside them; a sample that ends leaves at once, and its memory and place
// go to a waiting one (see Scheduler). Runs in a thread of its own, which launches as many steps
// ahead as the runner takes: a sample whose draw is under way is scheduled for one token more, and
// that is thrown away if the draw turns out to end the sample.
//
// On the CPU in fp32 a sample's tokens and log-probabilities are the same bit for bit whatever runs
// beside it, with any memory and any number of threads. On CUDA, and in other types, matrix
// products may round differently with the batch's size, unless the runner is batch-invariant: then
// samples run only with memory for their longest form, and an update of the weights waits until all
// have ended.
class BatchedEngine : public Engine {
 public:
  struct Options {
    // Samples accepted and not yet taken by Next; bounds the memory of requests and results.
    int64_t max_outstanding = 1 << 16;
    // Version that samples carry until the first weight update.
    uint64_t weights_version = 0;
    // Speculative decoding: maximum number of draft tokens (NgramProposer) per sample and step. A
    // draft token is accepted if the sample's own random number draws it, so samples do not change.
    // Draft tokens use batch slots that running samples leave free. 0: off.
    int num_speculative_tokens = 0;
    // Speculate even where it does not pay; else only while it does (SpeculationGate).
    bool always_speculate = false;
    // Prefix caching, until the weights change: for conversations and shared instructions. Results
    // on the CPU in fp32 are the same bit for bit.
    bool enable_prefix_caching = false;
    // Apply the runner's prefill budget while samples wait (Scheduler::Options::prefill_budget):
    // higher throughput, later first tokens.
    bool limit_prefill = true;
    // Sleep mode, for a device shared with the learner: the KV cache's memory is released during
    // weight updates (from BeginWeightUpdate, or PauseForWeightUpdate with KvPolicy::kInvalidate,
    // to EndWeightUpdate). With KvPolicy::kKeep the cache stays allocated. Runners that cannot
    // release it keep it.
    bool enable_sleep_mode = false;
    // How long Wake() is retried while others still hold the memory; then the engine fails.
    absl::Duration wake_timeout = absl::Seconds(10);
  };

  BatchedEngine(std::unique_ptr<ModelRunner> runner, const Options& options);
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
  // A request on the engine's thread.
  struct Group {
    GenerateRequest request;
    std::vector<Sample> samples;
    std::vector<bool> ended;
    int unfinished = 0;
    std::unique_ptr<NgramProposer> proposer;       // null: none are made
    std::vector<std::vector<int32_t>> unverified;  // by sample: its last token and the draft tokens
  };
  using Draws = std::vector<Scheduler::Draw>;
  // A request to cancel: one sample of a request, or all of them.
  struct Cancellation {
    uint64_t request = 0;
    std::optional<int> index;
  };

  // Checks that need no lock.
  absl::Status Validate(const GenerateRequest& request) const;

  void Run();
  // Takes what was submitted and cancelled; false when the engine is to stop. Waits if idle, and
  // while the weights are updated under what is being generated.
  bool TakeWork();
  // Stops touching the weights, and the cache if its memory is released, until the update ends. An
  // error is one of the runner.
  absl::Status Pause();
  absl::Status Sleep();
  absl::Status Wake();
  // Has the engine's thread pause; returns once it has, or the engine has failed.
  absl::Status AwaitPause(KvPolicy kv_policy) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartGroup(GenerateRequest request);
  // Launches a step, and collects one if no more can be launched. Nothing is in flight when no
  // group is left.
  absl::Status Step();
  absl::Status Launch(Scheduler::Step step);
  // Tokens of a scheduled slice; empty for a token whose draw is in flight, which is in its slot.
  std::span<const int32_t> TokensOf(const Scheduler::ScheduledSlice& scheduled) const;
  absl::Status CollectOldest();
  // Takes a token; ends the sample if it is the last.
  void AppendToken(const Scheduler::Draw& draw, const TokenDraw& token);
  // Appends the accepted tokens of a verified draft.
  void AppendVerified(const Scheduler::Draw& draw, std::span<const TokenDraw> tokens);
  // Whether any sample may have draft tokens once nothing is in flight.
  bool MayHaveDraftTokens() const;
  // Proposes draft tokens for the running samples. Nothing may be in flight.
  void ProposeDraftTokens();
  bool HasEnded(const Scheduler::Draw& draw) const;
  void End(int64_t group, int index, FinishReason reason);
  void CancelNow(const Cancellation& cancellation);
  // Hands over what the step has ended.
  void Publish(double seconds);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool NextIsDecided() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool PauseIsDecided() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool PauseIsOver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WakeIsDecided() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;

  // Touched by the engine's thread only.
  std::unique_ptr<ModelRunner> runner_;
  Scheduler scheduler_;
  std::map<int64_t, Group> groups_;
  std::map<uint64_t, int64_t> group_of_request_;
  std::deque<Draws> in_flight_;  // of launched steps, the oldest first
  int64_t next_group_ = 0;
  // Ended in this step; handed over when the step is done with the weights.
  std::vector<Sample> ended_;
  std::vector<uint64_t> ended_requests_;
  uint64_t version_ = 0;  // Of the weights that the steps in flight read.
  int64_t updates_seen_ = 0;
  bool pause_next_ = false;  // Instead of the next step.
  int64_t step_tokens_ = 0;  // Generated in this step.
  // Of the step launched last: its samples if it has no prompts, else 0; whether it has draft
  // tokens.
  int decoding_ = 0;
  bool speculated_ = false;
  int64_t launched_ = 0;
  int64_t accepted_tokens_ = 0;
  SpeculationGate gate_;

  mutable absl::Mutex mutex_;
  std::vector<GenerateRequest> submitted_ ABSL_GUARDED_BY(mutex_);
  std::vector<Cancellation> cancelled_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> active_requests_ ABSL_GUARDED_BY(mutex_);
  std::deque<Sample> finished_ ABSL_GUARDED_BY(mutex_);
  int64_t outstanding_ ABSL_GUARDED_BY(mutex_) = 0;  // Accepted, not yet taken by Next.
  int64_t unfinished_ ABSL_GUARDED_BY(mutex_) = 0;   // Accepted, not yet ended.
  bool updating_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<KvPolicy> pause_ ABSL_GUARDED_BY(mutex_);  // asked for, until the update ends
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;            // the weights are not touched
  bool asleep_ ABSL_GUARDED_BY(mutex_) = false;            // the cache's memory is not held
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t weights_version_ ABSL_GUARDED_BY(mutex_);
  int64_t updates_ ABSL_GUARDED_BY(mutex_) = 0;  // of the weights, so far
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  EngineStats stats_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_ENGINE_BATCHED_ENGINE_H_
