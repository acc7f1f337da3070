// Reads the answers of an executor's process, and believes no number of them.
#ifndef TRITONRL_EXEC_EXECUTOR_ANSWER_READER_H_
#define TRITONRL_EXEC_EXECUTOR_ANSWER_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "exec/device/session.h"
#include "exec/executor/executor.h"
#include "exec/executor/executor.pb.h"
#include "exec/executor/value_message.h"

namespace tritonrl::executor {

// What an answer may hold, as far as the request bounds it.
struct AnswerBounds {
  size_t calls = 0;          // live ones that were asked for
  size_t launches = 0;       // of the recording
  bool counted = false;      // whether counts of them were asked for
  int64_t output_bytes = 0;  // of one call's output
};

// All readers: InvalidArgument for a number that cannot be, lists whose lengths do not fit,
// contents outside of their region, or more of them than the bound.
absl::StatusOr<device::SessionResult> ReadSession(const SessionResult& message,
                                                  const AnswerBounds& bounds,
                                                  absl::Span<const Region> regions);
// One output of a call.
absl::StatusOr<device::Value> ReadOutput(const Value& message, const AnswerBounds& bounds,
                                         absl::Span<const Region> regions);
absl::StatusOr<RecordingSummary> ReadRecording(const Recording& message, int64_t most_launches);
absl::StatusOr<device::ReplayResult> ReadReplayResult(const ReplayResult& message,
                                                      const AnswerBounds& bounds,
                                                      absl::Span<const Region> regions);
// As many times as were asked for; an output if one was.
absl::StatusOr<tritonrl::TimedReplays> ReadTimed(const TimedReplays& message,
                                                 const TimeRequest& request,
                                                 const AnswerBounds& bounds,
                                                 absl::Span<const Region> regions);
// The GPU of an executor that is ready; nullopt on a CPU.
absl::StatusOr<std::optional<device::DeviceDescription>> ReadGpu(const Ready& message);

// The status that an answer names. One that no session has becomes Internal.
absl::Status ReadStatus(const Answer& message);

}  // namespace tritonrl::executor

#endif  // TRITONRL_EXEC_EXECUTOR_ANSWER_READER_H_
