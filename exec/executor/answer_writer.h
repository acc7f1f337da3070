// Writes the answers of an executor's process (answer_reader.h reads them).
#ifndef TRITONRL_EXEC_EXECUTOR_ANSWER_WRITER_H_
#define TRITONRL_EXEC_EXECUTOR_ANSWER_WRITER_H_

#include <vector>

#include "absl/status/status.h"
#include "exec/device/session.h"
#include "exec/executor/executor.pb.h"
#include "exec/executor/value_message.h"

namespace tritonrl::executor {

// Contents of tensors go where `placer` places them, whose errors are returned.
absl::Status WriteSession(const device::SessionResult& result, ContentsPlacer* placer,
                          SessionResult* message);
// Of a session that has run.
void WriteRecording(const device::Session& session, Recording* message);
absl::Status WriteReplayResult(const device::ReplayResult& result, ContentsPlacer* placer,
                               ReplayResult* message);
// Milliseconds become seconds. `output` may be null.
absl::Status WriteTimed(const std::vector<double>& milliseconds, const device::Value* output,
                        ContentsPlacer* placer, TimedReplays* message);
void WriteGpu(const device::DeviceDescription& gpu, Ready* message);

}  // namespace tritonrl::executor

#endif  // TRITONRL_EXEC_EXECUTOR_ANSWER_WRITER_H_
