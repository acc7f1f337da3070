// Bytes, and descriptors that come along, over a connected stream socket, with deadlines.
#ifndef TRITONRL_BASE_SOCKET_STREAM_H_
#define TRITONRL_BASE_SOCKET_STREAM_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tritonrl {

// Linux closes more descriptors than these that come with one call's bytes.
inline constexpr size_t kMaxSentDescriptors = 8;

// Receives up to `count` bytes without blocking. Returns the result of recv or recvmsg: the number
// of bytes, 0 at the end, -1 with errno. Appends descriptors that come along to `descriptors`,
// which the caller closes; with a null pointer Linux closes them.
ssize_t ReceiveNow(int socket, char* data, size_t count, std::vector<int>* descriptors);

// The other side may send anything, and stop at any byte. Errors of both functions:
// DeadlineExceeded; Unavailable, the other side is gone. The messages begin with its name.
class SocketStream {
 public:
  // `peer`: "the worker". The socket stays the caller's. It may be blocking or not.
  SocketStream(int socket, const char* peer) : socket_(socket), peer_(peer) {}

  // Waits for exactly `count` bytes and appends them; memory grows as they arrive, not as they were
  // announced. `descriptors`: as for ReceiveNow.
  absl::Status Read(size_t count, absl::Time deadline, std::string* bytes,
                    std::vector<int>* descriptors = nullptr) const;
  // Sends all bytes, and descriptors with the first one. InvalidArgument: more of them than
  // kMaxSentDescriptors.
  absl::Status Write(absl::string_view bytes, absl::Time deadline,
                     const std::vector<int>& descriptors = {}) const;

 private:
  absl::Status WaitFor(int16_t events, absl::Time deadline) const;
  absl::Status Gone() const;

  const int socket_;
  const char* const peer_;
};

// Lengths in front of messages: 4 bytes, little-endian.
inline constexpr size_t kLengthBytes = 4;
void AppendLength(uint32_t length, std::string* bytes);
uint32_t LengthAt(const char* bytes);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_SOCKET_STREAM_H_
