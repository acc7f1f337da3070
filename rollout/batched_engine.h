#ifndef TRITONRL_ROLLOUT_BATCHED_ENGINE_H_
#define TRITONRL_ROLLOUT_BATCHED_ENGINE_H_

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
#include "rollout/engine.h"
#include "rollout/model_runner.h"
#include "rollout/ngram_guesser.h"
#include "rollout/sampler.h"
#include "rollout/scheduler.h"
#include "rollout/speculation_gate.h"

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
    // Speculative decoding: at most so many tokens of a sample are guessed (NgramGuesser) and
    // passed through the model at once. A guess holds if it is what the sample's own random number
    // draws there, so that samples are the same without. Guesses take rows that running samples
    // leave of the runner's max_running: with as many samples, or with 1, there are none. 0: off.
    int max_guesses = 0;
    // Guess whether it pays or not; else only while it does (SpeculationGate).
    bool always_guess = false;
    // What prompts and samples leave in the cache serves prompts that begin alike, until the
    // weights change: for conversations and long instructions in common. Results on the CPU in fp32
    // are the same bit for bit.
    bool keep_prefixes = false;
    // While samples wait for memory or a place, prompts come in chunks that hide in steps which
    // decode (Scheduler::Options::weights_bound_tokens): more tokens a second of all, first tokens
    // of what waits later. For runners that say how large.
    bool small_chunks = true;
    // For a device that also learns: while the weights are updated (from BeginWeightUpdate, or
    // PauseForWeightUpdate with OldCache::kForget, to EndWeightUpdate) the cache's memory is given
    // back, so that the learner can have it. With OldCache::kKeep the cache stays where it is. For
    // runners that can give it back; others keep it.
    bool release_memory = false;
    // For so long after an update the engine asks again if others have not given the memory back
    // yet; then it fails.
    absl::Duration memory_timeout = absl::Seconds(10);
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
  absl::Status PauseForWeightUpdate(OldCache old_cache) override;
  EngineStats Stats() const override;

 private:
  // A request on the engine's thread.
  struct Group {
    GenerateRequest request;
    std::vector<Sample> samples;
    std::vector<bool> ended;
    int unfinished = 0;
    std::unique_ptr<NgramGuesser> guesser;       // null: none are made
    std::vector<std::vector<int32_t>> unproven;  // by sample: its last token and guesses behind it
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
  absl::Status ReleaseMemory();
  absl::Status TakeMemory();
  // Has the engine's thread pause; returns once it has, or the engine has failed.
  absl::Status AwaitPause(OldCache old_cache) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartGroup(GenerateRequest request);
  // Launches a step, and collects one if no more can be launched. Nothing is in flight when no
  // group is left.
  absl::Status Step();
  absl::Status Launch(Scheduler::Step step);
  StepSlice SliceOf(const Scheduler::Slice& slice) const;
  absl::Status CollectOldest();
  // Takes a token; ends the sample if it is the last.
  void AppendToken(const Scheduler::Draw& draw, const TokenDraw& token);
  // Takes as many of the tokens, the first of a slice with guesses, as hold.
  void AppendGuessed(const Scheduler::Draw& draw, std::span<const TokenDraw> tokens);
  // Whether any sample may have guesses once nothing is in flight.
  bool MayHaveGuesses() const;
  // Says what samples may say next. Nothing may be in flight.
  void MakeGuesses();
  bool HasEnded(const Scheduler::Draw& draw) const;
  void End(int64_t group, int index, FinishReason reason);
  void CancelNow(const Cancellation& cancellation);
  // Hands over what the step has ended.
  void Publish(double seconds);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool NextIsDecided() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool PauseIsDecided() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool PauseIsOver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MemoryIsDecided() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

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
  // Of the step launched last: its samples if it has no prompts, else 0; whether it has guesses.
  int decoding_ = 0;
  bool guessed_ = false;
  int64_t launched_ = 0;
  int64_t guessed_right_ = 0;
  SpeculationGate gate_;

  mutable absl::Mutex mutex_;
  std::vector<GenerateRequest> submitted_ ABSL_GUARDED_BY(mutex_);
  std::vector<Cancellation> cancelled_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> active_requests_ ABSL_GUARDED_BY(mutex_);
  std::deque<Sample> finished_ ABSL_GUARDED_BY(mutex_);
  int64_t outstanding_ ABSL_GUARDED_BY(mutex_) = 0;  // Accepted, not yet taken by Next.
  int64_t unfinished_ ABSL_GUARDED_BY(mutex_) = 0;   // Accepted, not yet ended.
  bool updating_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<OldCache> pause_ ABSL_GUARDED_BY(mutex_);  // asked for, until the update ends
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;            // the weights are not touched
  bool released_ ABSL_GUARDED_BY(mutex_) = false;          // the cache's memory is not held
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t weights_version_ ABSL_GUARDED_BY(mutex_);
  int64_t updates_ ABSL_GUARDED_BY(mutex_) = 0;  // of the weights, so far
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  EngineStats stats_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_BATCHED_ENGINE_H_
