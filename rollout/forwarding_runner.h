#ifndef TRITONRL_ROLLOUT_FORWARDING_RUNNER_H_
#define TRITONRL_ROLLOUT_FORWARDING_RUNNER_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rollout/model_runner.h"

namespace tritonrl {

// Does everything by another runner, which it owns: for runners that change a part of what one
// does.
class ForwardingRunner : public ModelRunner {
 public:
  explicit ForwardingRunner(std::unique_ptr<ModelRunner> runner) : runner_(std::move(runner)) {}

  int64_t vocab_size() const override { return runner_->vocab_size(); }
  int64_t max_length() const override { return runner_->max_length(); }
  int num_pages() const override { return runner_->num_pages(); }
  int page_size() const override { return runner_->page_size(); }
  int max_running() const override { return runner_->max_running(); }
  int max_step_tokens() const override { return runner_->max_step_tokens(); }
  bool batch_invariant() const override { return runner_->batch_invariant(); }
  int chunk_multiple() const override { return runner_->chunk_multiple(); }
  int weights_bound_tokens() const override { return runner_->weights_bound_tokens(); }
  int max_in_flight() const override { return runner_->max_in_flight(); }
  void WeightsChanged() override { runner_->WeightsChanged(); }
  absl::Status ReleaseMemory() override { return runner_->ReleaseMemory(); }
  absl::Status TakeMemory() override { return runner_->TakeMemory(); }
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

#endif  // TRITONRL_ROLLOUT_FORWARDING_RUNNER_H_
