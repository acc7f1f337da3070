// Interface between engine and model: batched forward passes over a paged KV cache.

#ifndef TRITONRL_ROLLOUT_ENGINE_MODEL_RUNNER_H_
#define TRITONRL_ROLLOUT_ENGINE_MODEL_RUNNER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/sequence_slice.h"
#include "rollout/engine/engine.h"
#include "rollout/engine/sampler.h"
#include "rollout/scheduler/page_allocator.h"

namespace tritonrl {

// A draw of one token with the uniform number TokenUniform(stream, position).
struct StepDraw {
  int slot = -1;  // batch slot that keeps the token; -1: none
  const SamplingSettings* sampling = nullptr;
  uint64_t stream = 0;
  int64_t position = 0;
  // The sample's tokens before this one. Only valid if sampling->draws_on_host().
  TokenHistory history;
  // At least 0: the draw has TokenDraw::log_probs with this number of alternatives.
  int top_log_probs = -1;
};

// The log-probabilities wanted of a slice with all_logits: target k is the token after the slice's
// token k. The last token of a prompt has no target.
struct PromptTargets {
  std::span<const int32_t> targets;
  int top = 0;  // number of alternatives
};

// One forward pass. The copies run before the slices and in any order: no page is written twice, or
// both read and written. The slices belong to different sequences, and no slice reads a page that
// another one writes. Slices with a slot have at most max_num_seqs() logit rows. Draws are in the
// order of slices.
struct ModelStep {
  std::span<const PageCopy> copies;
  std::vector<SequenceSlice> slices;
  std::vector<StepDraw> draws;
  std::vector<PromptTargets> prompt_targets;  // of the slices with all_logits, in their order
};

// Runs steps over a paged cache and draws tokens. Called by one thread.
class ModelRunner {
 public:
  virtual ~ModelRunner() = default;

  virtual int64_t vocab_size() const = 0;
  // Maximum number of tokens of a sequence.
  virtual int64_t max_length() const = 0;
  virtual int num_pages() const = 0;
  virtual int page_size() const = 0;
  // Number of batch slots, at least 1; max_num_batched_tokens() is at least as large.
  virtual int max_num_seqs() const = 0;
  virtual int max_num_batched_tokens() const = 0;
  // Whether the bits of a token's logits depend only on its sequence and on which of the sequence's
  // tokens were prefilled and which decoded; the engine then never recomputes a decoded token. A
  // runner whose bits do not depend on that split either returns false.
  virtual bool batch_invariant() const { return false; }
  // Chunks of prompts begin at multiples of this many positions, and end there or with the prompt.
  // max_num_batched_tokens() is at least max_num_seqs() + chunk_alignment() if it is not 1.
  virtual int chunk_alignment() const { return 1; }
  // Prefill budget: a step of this many tokens is still memory-bound (it reads the weights); while
  // samples wait, chunked prefill fills steps up to it. 0: none.
  virtual int prefill_budget() const { return 0; }
  // Maximum number of tokens of a step in slices with all_logits, at least chunk_alignment(). Their
  // logits take memory.
  virtual int64_t max_prompt_logits() const { return int64_t{1} << 30; }
  // Maximum number of launched steps that are not collected, at least 1. The engine collects all
  // steps before it launches a draw that draws_on_host().
  virtual int max_in_flight() const = 0;

  // The weights have changed: later steps must use the new ones. Called by any thread while no step
  // is in flight.
  virtual void WeightsChanged() {}

  // Frees the KV cache's memory for other uses in the process until Wake(). Its contents are lost,
  // and Launch returns FailedPrecondition until then. FailedPrecondition if a step is not
  // collected. Does nothing if asleep already, or if the runner cannot free the memory.
  virtual absl::Status Sleep() { return absl::OkStatus(); }
  // Allocates the memory again, with undefined contents. ResourceExhausted: the memory is not free;
  // the call may be repeated. Does nothing if awake.
  virtual absl::Status Wake() { return absl::OkStatus(); }

  // Starts a step after all steps launched before. The runner does not use `step`'s pointers and
  // spans after the call.
  virtual absl::Status Launch(const ModelStep& step) = 0;

  // Waits for the oldest step that is not collected and returns its draws in order. Token -1: the
  // logits gave no distribution.
  virtual absl::StatusOr<std::vector<TokenDraw>> Collect() = 0;

  // The log-probabilities of the prompt_targets of the step collected last, all in one list; NaN
  // where the logits gave no distribution. Called at most once for a step.
  virtual std::vector<TokenLogProbs> TakePromptLogProbs() { return {}; }
};

// Forwards all calls to a runner that it owns; base class of runners that change some of them.
class ForwardingRunner : public ModelRunner {
 public:
  explicit ForwardingRunner(std::unique_ptr<ModelRunner> runner) : runner_(std::move(runner)) {}

  int64_t vocab_size() const override { return runner_->vocab_size(); }
  int64_t max_length() const override { return runner_->max_length(); }
  int num_pages() const override { return runner_->num_pages(); }
  int page_size() const override { return runner_->page_size(); }
  int max_num_seqs() const override { return runner_->max_num_seqs(); }
  int max_num_batched_tokens() const override { return runner_->max_num_batched_tokens(); }
  bool batch_invariant() const override { return runner_->batch_invariant(); }
  int chunk_alignment() const override { return runner_->chunk_alignment(); }
  int prefill_budget() const override { return runner_->prefill_budget(); }
  int64_t max_prompt_logits() const override { return runner_->max_prompt_logits(); }
  int max_in_flight() const override { return runner_->max_in_flight(); }
  void WeightsChanged() override { runner_->WeightsChanged(); }
  absl::Status Sleep() override { return runner_->Sleep(); }
  absl::Status Wake() override { return runner_->Wake(); }
  absl::Status Launch(const ModelStep& step) override { return runner_->Launch(step); }
  absl::StatusOr<std::vector<TokenDraw>> Collect() override { return runner_->Collect(); }
  std::vector<TokenLogProbs> TakePromptLogProbs() override { return runner_->TakePromptLogProbs(); }

 protected:
  ModelRunner* runner() { return runner_.get(); }
  // Destroys the owned runner early, before the derived class's members that it uses. No call may
  // follow.
  void EndRunner() { runner_.reset(); }

 private:
  std::unique_ptr<ModelRunner> runner_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_ENGINE_MODEL_RUNNER_H_
