// Protobuf messages over a stream socket, each with its length in front (32 bits, little-endian).
#ifndef TRITONRL_EXEC_EXECUTOR_MESSAGE_CHANNEL_H_
#define TRITONRL_EXEC_EXECUTOR_MESSAGE_CHANNEL_H_

#include <google/protobuf/message_lite.h>

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "exec/device/limits.h"

namespace tritonrl::executor {

// The numbers of the descriptors that an executor's process starts with.
inline constexpr int kControlSocket = 3;
inline constexpr int kOutboxMemory = 4;  // the executor writes, for answers
inline constexpr int kInboxMemory = 5;   // the executor can only read, of requests

// An answer is bounded, as its sender may be taken over: a message of so many bytes takes at most
// a hundred times as much memory when it is parsed.
inline constexpr size_t kMaxAnswerBytes = 16 << 20;
inline constexpr size_t kMaxAnswerText = 4 * device::kMaxErrorText;  // of one text in it
inline constexpr size_t kMaxRequestBytes = 256 << 20;

// Sends a message, with descriptors if there are any. Errors: DeadlineExceeded; Unavailable, the
// other side is gone; ResourceExhausted, more than `max_bytes`.
absl::Status SendMessage(int socket, const google::protobuf::MessageLite& message, size_t max_bytes,
                         absl::Time deadline, const std::vector<int>& descriptors = {});

// Waits for a message. Appends the descriptors that come along to `descriptors`, which the caller
// closes; with a null pointer none is taken. Errors as those of SendMessage; InvalidArgument: no
// message of this type.
absl::Status ReceiveMessage(int socket, google::protobuf::MessageLite* message, size_t max_bytes,
                            absl::Time deadline, std::vector<int>* descriptors = nullptr);

}  // namespace tritonrl::executor

#endif  // TRITONRL_EXEC_EXECUTOR_MESSAGE_CHANNEL_H_
