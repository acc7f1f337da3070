// Messages from the tensor-parallel driver to its workers: one per ModelRunner call.
#ifndef TRITONRL_ROLLOUT_DISTRIBUTED_STEP_MESSAGE_H_
#define TRITONRL_ROLLOUT_DISTRIBUTED_STEP_MESSAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rollout/engine/model_runner.h"

namespace tritonrl {

enum class StepCommand : uint8_t {
  kLaunch = 1,  // with a step
  kCollect,
  kWeightsChanged,
  kSleep,
  kWake,
  kHeartbeat,  // rank 0 is alive
  kEnd,        // the last message
};

// Encode a command without a step, and kLaunch with its step. Numbers have this machine's byte
// order.
std::string EncodeCommand(StepCommand command);
std::string EncodeLaunch(const ModelStep& step);

// A decoded message. It owns the memory to which its step points.
class StepMessage {
 public:
  // DataLoss: `text` is not a complete result of EncodeCommand or EncodeLaunch.
  static absl::StatusOr<StepMessage> Decode(absl::string_view text);
  StepMessage(StepMessage&&) = default;
  StepMessage& operator=(StepMessage&&) = default;

  StepCommand command() const { return command_; }
  const ModelStep& step() const { return step_; }

 private:
  StepMessage() = default;

  StepCommand command_ = StepCommand::kHeartbeat;
  ModelStep step_;
  std::vector<PageCopy> copies_;
  std::vector<int32_t> tokens_, pages_;  // of all slices
  std::vector<SamplingSettings> sampling_;
};

// Convert the status of a command to text and back.
std::string EncodeStatus(const absl::Status& status);
absl::Status DecodeStatus(absl::string_view text);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_DISTRIBUTED_STEP_MESSAGE_H_
