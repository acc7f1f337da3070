// A candidate's process that sends prepared messages.
#ifndef TRITONRL_EXEC_DEVICE_TESTING_SCRIPTED_CHANNEL_H_
#define TRITONRL_EXEC_DEVICE_TESTING_SCRIPTED_CHANNEL_H_

#include <string>
#include <vector>

#include "exec/device/frame.h"
#include "exec/device/json.h"

namespace tritonrl::device {

// Sends its frames in order, and then is gone. Keeps the replies.
class ScriptedChannel : public Channel {
 public:
  explicit ScriptedChannel(std::vector<Frame> frames) : frames_(std::move(frames)) {}

  absl::StatusOr<Frame> Receive(absl::Time) override {
    if (next_ == frames_.size()) return absl::UnavailableError("the script has ended");
    return frames_[next_++];
  }
  absl::Status Send(const Frame& frame, absl::Time) override {
    replies_.push_back(frame);
    return absl::OkStatus();
  }
  const std::vector<Frame>& replies() const { return replies_; }
  Json reply(size_t i) const {
    return i < replies_.size() ? Json::parse(replies_[i].header) : Json();
  }

 private:
  std::vector<Frame> frames_;
  size_t next_ = 0;
  std::vector<Frame> replies_;
};

// Texts of messages. Storage numbers are those of allocation: 1, 2, ...
std::string FloatTensor(int storage, int count, int offset = 0);  // the value {"t": ...}
std::string TensorText(int storage, const std::string& dtype, const std::string& shape,
                       const std::string& stride, int offset = 0);
std::string OperatorText(const std::string& name, const std::string& overload,
                         const std::string& args, const std::string& kwargs = "");
std::string EmptyText(int count, const std::string& dtype = "float32");  // an operator
std::string KernelText(const std::string& ttir);
std::string LaunchText(int kernel, const std::string& args);

// Frames of texts without payloads.
std::vector<Frame> Script(const std::vector<std::string>& texts);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_TESTING_SCRIPTED_CHANNEL_H_
