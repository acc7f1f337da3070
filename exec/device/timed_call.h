// A recorded call that is ready to be timed on its device, without the candidate's process.
#ifndef TRITONRL_EXEC_DEVICE_TIMED_CALL_H_
#define TRITONRL_EXEC_DEVICE_TIMED_CALL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/device/session.h"

namespace tritonrl::device {

class TimedCall {
 public:
  virtual ~TimedCall() = default;

  // All waiting ends then. At first it is the deadline of the replay that made this.
  virtual void set_deadline(absl::Time deadline) = 0;
  // Milliseconds of each of `count` timed replays. Errors are those of the commands.
  virtual absl::StatusOr<std::vector<double>> Time(int count) = 0;
  // The output of the last timed replay, on the host.
  virtual absl::StatusOr<Value> Output() = 0;
  // Mean milliseconds of `count` replays command by command, with the host's time for launches, and
  // with the cache as the one before leaves it.
  virtual absl::StatusOr<double> MeanWithLaunches(int count) = 0;
  // Empty if the call is replayed as a graph; else why it is not. Timed replays are then command by
  // command, behind a wait of the device that hides the host's time.
  virtual const std::string& not_a_graph() const = 0;
};

// Replays the call once in full, and makes it ready. `direct`: not as a graph. The session must
// outlive the result, and must not be used for other replays until that is gone.
using MakeTimedCall = std::function<absl::StatusOr<std::unique_ptr<TimedCall>>(
    Session* session, const ReplayOptions& options, bool direct)>;

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_TIMED_CALL_H_
