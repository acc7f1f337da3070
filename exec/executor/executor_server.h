// The loop of an executor's process: one candidate after the other.
#ifndef TRITONRL_EXEC_EXECUTOR_EXECUTOR_SERVER_H_
#define TRITONRL_EXEC_EXECUTOR_EXECUTOR_SERVER_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "exec/device/session.h"
#include "exec/executor/outbox.h"

namespace tritonrl::executor {

// Makes the session of a candidate, on the device of this process; only one lives at a time.
using MakeSession = std::function<std::unique_ptr<device::Session>(device::SessionOptions options)>;

// Answers requests (executor.proto) until the other side of the control socket is gone: then OK.
// Errors: a request that makes no sense.
absl::Status Serve(const MakeSession& make, Outbox* outbox);

}  // namespace tritonrl::executor

#endif  // TRITONRL_EXEC_EXECUTOR_EXECUTOR_SERVER_H_
