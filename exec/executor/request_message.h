// Requests to an executor's process: what a session is, and what a replay is.
#ifndef TRITONRL_EXEC_EXECUTOR_REQUEST_MESSAGE_H_
#define TRITONRL_EXEC_EXECUTOR_REQUEST_MESSAGE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "exec/device/session.h"
#include "exec/executor/executor.h"
#include "exec/executor/executor.pb.h"
#include "exec/executor/value_message.h"

namespace tritonrl::executor {

// Everything but `print`, of which the message says whether it is set, and of `exchange` the sizes
// of its windows. Errors: of the placer.
absl::Status WriteOptions(const device::SessionOptions& options, ContentsPlacer* placer,
                          Run* message);
absl::Status WriteReplay(const ReplayRequest& request, ContentsPlacer* placer, Replay* message);
void WriteTimeRequest(const TimeRequest& request, TimeReplays* message);

// InvalidArgument: the message is none of this build.
absl::StatusOr<device::SessionOptions> ReadOptions(const Run& message,
                                                   absl::Span<const Region> regions);
absl::StatusOr<ReplayRequest> ReadReplay(const Replay& message, absl::Span<const Region> regions);
TimeRequest ReadTimeRequest(const TimeReplays& message);
absl::Time TimeOfMessage(int64_t nanoseconds);

}  // namespace tritonrl::executor

#endif  // TRITONRL_EXEC_EXECUTOR_REQUEST_MESSAGE_H_
