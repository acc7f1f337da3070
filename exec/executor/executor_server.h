// The loop of an executor's process: one candidate after the other.
#ifndef TRITONRL_EXEC_EXECUTOR_EXECUTOR_SERVER_H_
#define TRITONRL_EXEC_EXECUTOR_EXECUTOR_SERVER_H_

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "exec/device/session.h"
#include "exec/device/timed_call.h"
#include "exec/device/window.h"
#include "exec/executor/outbox.h"

namespace tritonrl::executor {

// Makes the session of a candidate, on the device of this process; only one lives at a time.
using MakeSession = std::function<std::unique_ptr<device::Session>(device::SessionOptions options)>;

// The device of this process.
struct ServedDevice {
  MakeSession make;
  device::MakeTimedCall make_timed;  // null: it takes no times
  // Opens a window, of a descriptor that stays the caller's.
  std::function<absl::StatusOr<std::unique_ptr<device::Window>>(int fd, int64_t bytes)> open_window;
  std::optional<device::DeviceDescription> gpu;  // nullopt: a CPU
  std::function<void()> rest;                    // after each candidate; may be null
  // Whether this process can serve no other candidate. Null: it always can. Then nothing of the
  // last one is taken down, as that may wait for a kernel that does not end.
  std::function<bool()> worn;
  // Whether a kernel broke the device, so that errors are its doing. Null: no kernel can.
  std::function<bool()> broken;
};

// Answers requests (executor.proto) until the other side of the control socket is gone: then OK.
// Errors: a request that makes no sense.
absl::Status Serve(const ServedDevice& served, Outbox* outbox);

}  // namespace tritonrl::executor

#endif  // TRITONRL_EXEC_EXECUTOR_EXECUTOR_SERVER_H_
