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
#include "rollout/forwarding_runner.h"

namespace tritonrl {

// Runs all steps by `runner`. The last token of a sample's planned length becomes `stop_id`, and
// any earlier stop_id another token (what the cache has of it stays).
class PlannedLengthRunner : public ForwardingRunner {
 public:
  // Tokens of the sample that draws from this stream (StepDraw), its last one included.
  using Length = std::function<int64_t(uint64_t stream)>;

  PlannedLengthRunner(std::unique_ptr<ModelRunner> runner, int32_t stop_id, Length length)
      : ForwardingRunner(std::move(runner)), stop_id_(stop_id), length_(std::move(length)) {}

  absl::Status Launch(const ModelStep& step) override {
    std::vector<bool>& last = last_.emplace_back();
    for (const StepDraw& draw : step.draws) {
      last.push_back(draw.position + 1 >= length_(draw.stream));
    }
    return ForwardingRunner::Launch(step);
  }

  absl::StatusOr<std::vector<TokenDraw>> Collect() override {
    ASSIGN_OR_RETURN(std::vector<TokenDraw> draws, ForwardingRunner::Collect());
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
  const int32_t stop_id_;
  const Length length_;
  std::deque<std::vector<bool>> last_;  // of the steps in flight: draws that end their sample
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_PLANNED_LENGTH_RUNNER_H_
