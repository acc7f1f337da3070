// A runner whose samples end when a plan says so, for benches: random weights have no end in mind.
#ifndef TRITONRL_ROLLOUT_PLANNED_LENGTH_RUNNER_H_
#define TRITONRL_ROLLOUT_PLANNED_LENGTH_RUNNER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "rollout/model_runner.h"

namespace tritonrl {

// Runs all steps by `runner`. The last token of a sample's planned length becomes `stop_id`, and
// any earlier stop_id another token (what the cache has of it stays).
class PlannedLengthRunner : public ModelRunner {
 public:
  // Tokens of the sample that draws from this stream (StepDraw), its last one included.
  using Length = std::function<int64_t(uint64_t stream)>;

  PlannedLengthRunner(std::unique_ptr<ModelRunner> runner, int32_t stop_id, Length length)
      : runner_(std::move(runner)), stop_id_(stop_id), length_(std::move(length)) {}

  int64_t vocab_size() const override { return runner_->vocab_size(); }
  int64_t max_length() const override { return runner_->max_length(); }
  int num_pages() const override { return runner_->num_pages(); }
  int page_size() const override { return runner_->page_size(); }
  int max_running() const override { return runner_->max_running(); }
  int max_step_tokens() const override { return runner_->max_step_tokens(); }
  bool batch_invariant() const override { return runner_->batch_invariant(); }
  int chunk_multiple() const override { return runner_->chunk_multiple(); }
  int max_in_flight() const override { return runner_->max_in_flight(); }
  void WeightsChanged() override { runner_->WeightsChanged(); }

  absl::Status Launch(const ModelStep& step) override {
    std::vector<bool>& last = last_.emplace_back();
    for (const StepDraw& draw : step.draws) {
      last.push_back(draw.position + 1 >= length_(draw.stream));
    }
    return runner_->Launch(step);
  }

  absl::StatusOr<std::vector<TokenDraw>> Collect() override {
    ASSIGN_OR_RETURN(std::vector<TokenDraw> draws, runner_->Collect());
    for (size_t i = 0; i < draws.size(); ++i) {
      if (last_.front()[i]) {
        draws[i].token = stop_id_;
      } else if (draws[i].token == stop_id_) {
        draws[i].token = stop_id_ == 0 ? 1 : stop_id_ - 1;
      }
    }
    last_.pop_front();
    return draws;
  }

 private:
  const std::unique_ptr<ModelRunner> runner_;
  const int32_t stop_id_;
  const Length length_;
  std::deque<std::vector<bool>> last_;  // of the steps in flight: draws that end their sample
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_PLANNED_LENGTH_RUNNER_H_
