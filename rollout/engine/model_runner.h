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

// A draw of one token: the uniform number is TokenUniform(stream, position).
struct StepDraw {
  int slot = -1;  // remembers the token; -1: nobody does
  const SamplingSettings* sampling = nullptr;
  uint64_t stream = 0;
  int64_t position = 0;
};

// One pass through the model. First the copies, all at once: no page is copied to twice, nor both
// copied to and from. Then the slices, which are of different sequences: a page that one of them
// writes to no other reads. Rows with logits of slices with a slot are at most max_num_seqs().
struct ModelStep {
  std::span<const PageCopy> copies;
  std::vector<SequenceSlice> slices;
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
  // Number of batch slots, at least 1; max_num_batched_tokens() is at least as large.
  virtual int max_num_seqs() const = 0;
  virtual int max_num_batched_tokens() const = 0;
  // Whether a token's logits depend on its own sequence alone, to the bit, and on which tokens of
  // that were computed in slices of a prompt and which decoded; the engine then computes no decoded
  // token again. False also where that makes no difference.
  virtual bool batch_invariant() const { return false; }
  // Slices of prompts begin at multiples of so many positions, and end there or with the prompt.
  // max_num_batched_tokens() is at least max_num_seqs() and so many.
  virtual int chunk_alignment() const { return 1; }
  // Prefill budget: a step of this many tokens is still bound by reading the weights; while samples
  // wait, chunked prefill fills steps up to it. 0: none.
  virtual int prefill_budget() const { return 0; }
  // Steps that may be launched and not collected, at least 1.
  virtual int max_in_flight() const = 0;

  // Others have written the weights: steps that are launched from now on see it. Called by any
  // thread, while no step is under way.
  virtual void WeightsChanged() {}

  // Releases the KV cache's memory to the process until Wake(); its contents are lost, and Launch
  // returns FailedPrecondition until then. FailedPrecondition if a step has not been collected.
  // Does nothing the second time, or if the runner cannot release it.
  virtual absl::Status Sleep() { return absl::OkStatus(); }
  // Allocates it again; pages are empty. ResourceExhausted: others hold the memory; may be retried.
  // Does nothing if awake.
  virtual absl::Status Wake() { return absl::OkStatus(); }

  // Starts a step, after all steps launched before. What `step` points to need not outlive the
  // call.
  virtual absl::Status Launch(const ModelStep& step) = 0;

  // Waits for the oldest step that has not been collected: its draws in their order. A token of -1
  // says that the logits did not give a distribution.
  virtual absl::StatusOr<std::vector<TokenDraw>> Collect() = 0;
};

// Does everything by another runner, which it owns: for runners that change a part of what one
// does.
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
  int max_in_flight() const override { return runner_->max_in_flight(); }
  void WeightsChanged() override { runner_->WeightsChanged(); }
  absl::Status Sleep() override { return runner_->Sleep(); }
  absl::Status Wake() override { return runner_->Wake(); }
  absl::Status Launch(const ModelStep& step) override { return runner_->Launch(step); }
  absl::StatusOr<std::vector<TokenDraw>> Collect() override { return runner_->Collect(); }

 protected:
  ModelRunner* runner() { return runner_.get(); }
  // Before the base's destructor would, for what the other runner uses; no call may follow.
  void EndRunner() { runner_.reset(); }

 private:
  std::unique_ptr<ModelRunner> runner_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_ENGINE_MODEL_RUNNER_H_
