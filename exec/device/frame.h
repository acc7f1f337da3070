// Messages as bytes: two little-endian u32 (bytes of the header, bytes of the payload), the header
// (a JSON object), the payload.
#ifndef TRITONRL_EXEC_DEVICE_FRAME_H_
#define TRITONRL_EXEC_DEVICE_FRAME_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/socket_stream.h"
#include "exec/device/limits.h"

namespace tritonrl::device {

struct Frame {
  std::string header;
  std::string payload;
};

// The way to the candidate's process, which may send anything.
class Channel {
 public:
  virtual ~Channel() = default;

  // Waits for a whole frame. Errors: DeadlineExceeded; Unavailable if the other side is gone;
  // InvalidArgument if a size exceeds its limit.
  virtual absl::StatusOr<Frame> Receive(absl::Time deadline) = 0;
  // Errors: DeadlineExceeded, if the other side does not read; Unavailable.
  virtual absl::Status Send(const Frame& frame, absl::Time deadline) = 0;
};

// Over a connected stream socket, which the caller keeps open and closes.
class SocketChannel : public Channel {
 public:
  struct Limits {
    size_t header_bytes = kMaxHeaderBytes;
    size_t payload_bytes = kMaxPayloadBytes;
  };
  explicit SocketChannel(int socket) : SocketChannel(socket, Limits()) {}
  SocketChannel(int socket, const Limits& limits)
      : stream_(socket, "the candidate's process"), limits_(limits) {}

  absl::StatusOr<Frame> Receive(absl::Time deadline) override;
  absl::Status Send(const Frame& frame, absl::Time deadline) override;

 private:
  const SocketStream stream_;
  Limits limits_;
};

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_FRAME_H_
