#ifndef TRITONRL_ROLLOUT_MODEL_RUNNER_H_
#define TRITONRL_ROLLOUT_MODEL_RUNNER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rollout/block_pool.h"
#include "rollout/engine.h"
#include "rollout/sampler.h"

namespace tritonrl {

// Consecutive tokens of one sequence at positions [first, first + count).
struct StepSlice {
  // `count` tokens; empty: one token, the one that was drawn last for `slot`, in an earlier step.
  std::span<const int32_t> tokens;
  int slot = -1;  // of the sequence, in [0, max_running); -1 for a prompt
  int64_t first = 0;
  int64_t count = 0;
  // Pages of positions [0, first + count); what lies before `first` is there already.
  std::span<const int32_t> pages;
  // So many of the step's draws, in order, are from the logits after the last token.
  int draws = 0;
  // The last so many tokens are guesses; then draws are one more, each from the logits after each
  // of the last `draws` tokens. Only in slices of a slot, whose `count` is `draws`.
  int guesses = 0;

  // Rows with logits.
  int logit_rows() const { return guesses > 0 ? draws : (draws > 0 ? 1 : 0); }
};

// A draw of one token: the uniform number is TokenUniform(stream, position).
struct StepDraw {
  int slot = -1;  // remembers the token; -1: nobody does
  const SamplingSettings* sampling = nullptr;
  uint64_t stream = 0;
  int64_t position = 0;
};

// One pass through the model. First the copies, all at once: no page is copied to twice, nor both
// copied to and from. Then the slices, which are of different sequences: a page that one of them
// writes to no other reads. Rows with logits of slices with a slot are at most max_running().
struct ModelStep {
  std::span<const PageCopy> copies;
  std::vector<StepSlice> slices;
  std::vector<StepDraw> draws;
};

// What the engine needs of a model: runs steps over a paged cache and draws tokens. Called by one
// thread.
class ModelRunner {
 public:
  virtual ~ModelRunner() = default;

  virtual int64_t vocab_size() const = 0;
  // Most tokens of a sequence.
  virtual int64_t max_length() const = 0;
  virtual int num_pages() const = 0;
  virtual int page_size() const = 0;
  // Sequences that run side by side, at least 1; steps have at most max_step_tokens() tokens, which
  // is at least as many.
  virtual int max_running() const = 0;
  virtual int max_step_tokens() const = 0;
  // Whether a token's logits depend on its own sequence alone, to the bit, and on which tokens of
  // that were computed in slices of a prompt and which decoded; the engine then computes no decoded
  // token again. False also where that makes no difference.
  virtual bool batch_invariant() const { return false; }
  // Slices of prompts begin at multiples of so many positions, and end there or with the prompt.
  // max_step_tokens() is at least max_running() and so many.
  virtual int chunk_multiple() const { return 1; }
  // About so many tokens of a step are computed in the time that reading the weights takes; while
  // samples wait, the engine fills steps up to it with chunks of prompts. 0: every token counts.
  virtual int weights_bound_tokens() const { return 0; }
  // Steps that may be launched and not collected, at least 1.
  virtual int max_in_flight() const = 0;

  // Others have written the weights: steps that are launched from now on see it. Called by any
  // thread, while no step is under way.
  virtual void WeightsChanged() {}

  // Gives the memory of the pages back, so that others in the process can have it until TakeMemory;
  // what the pages hold is lost, and until then steps are not launched (FailedPrecondition).
  // Called while no other call is under way and all steps have been collected (else
  // FailedPrecondition). Does nothing the second time, or where the runner cannot give it back.
  virtual absl::Status ReleaseMemory() { return absl::OkStatus(); }
  // Takes it again; pages hold nothing yet. ResourceExhausted: others have it, and the call may be
  // repeated later. Does nothing if it was not given back.
  virtual absl::Status TakeMemory() { return absl::OkStatus(); }

  // Starts a step, after all steps launched before. What `step` points to need not outlive the
  // call.
  virtual absl::Status Launch(const ModelStep& step) = 0;

  // Waits for the oldest step that has not been collected: its draws in their order. A token of -1
  // says that the logits did not give a distribution.
  virtual absl::StatusOr<std::vector<TokenDraw>> Collect() = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_MODEL_RUNNER_H_
