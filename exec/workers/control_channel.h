// A two-way line between the supervisor and a running job: whole messages of JSON text. What comes
// in was written by a process that may hold a candidate, so it is bytes and nothing more.
#ifndef TRITONRL_EXEC_WORKERS_CONTROL_CHANNEL_H_
#define TRITONRL_EXEC_WORKERS_CONTROL_CHANNEL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tritonrl {

class ControlChannel {
 public:
  // Longest message in either direction; a longer one from the job arrives cut off.
  static constexpr size_t kMaxMessage = 128 << 10;

  static absl::StatusOr<ControlChannel> Create();
  ControlChannel(ControlChannel&& other) noexcept;
  ControlChannel& operator=(ControlChannel&&) = delete;
  ~ControlChannel();

  // The end that the job gets; stays open here too, so that another worker can be given it.
  int job_end() const { return job_end_; }

  enum class Event { kMessage, kOther, kDeadline };
  // Waits for a message. kOther: `other_fd` is readable and no message is left. Descriptors that
  // came along are put into `fds`, which owns them; with null the kernel drops them. A line that
  // the job has shut down brings no more messages.
  Event Wait(int other_fd, absl::Time deadline, std::string* message,
             std::vector<int>* fds = nullptr);

  // Never blocks; Unavailable when the job does not read what it was sent.
  absl::Status Send(absl::string_view message);

 private:
  bool ShutDown() const;
  ControlChannel(int own_end, int job_end) : own_end_(own_end), job_end_(job_end) {}

  int own_end_;
  int job_end_;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_WORKERS_CONTROL_CHANNEL_H_
