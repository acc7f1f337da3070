#include "exec/device/frame.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace tritonrl::device {
namespace {

constexpr size_t kPrefixBytes = 8;
constexpr size_t kChunkBytes = 1 << 20;

uint32_t LoadU32(const char* bytes) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

void AppendU32(size_t value, std::string& bytes) {
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

absl::Status WaitFor(int socket, int16_t events, absl::Time deadline) {
  while (true) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError("the candidate's process did not finish in time");
    }
    pollfd poll_fd{socket, events, 0};
    // The least first: one more millisecond than the infinite duration has overflows.
    const int64_t ms = absl::ToInt64Milliseconds(std::min(left, absl::Seconds(1))) + 1;
    const int ready = poll(&poll_fd, 1, static_cast<int>(ms));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) {
      return absl::InternalError(absl::StrCat("poll: ", strerror(errno)));
    }
  }
}

absl::Status Gone() {
  return absl::UnavailableError("the candidate's process closed its connection");
}

bool MustWait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

absl::Status SocketChannel::Read(size_t count, absl::Time deadline, std::string& bytes) {
  while (count > 0) {
    const size_t chunk = std::min(count, kChunkBytes);
    const size_t begin = bytes.size();
    bytes.resize(begin + chunk);
    const ssize_t got = recv(socket_, bytes.data() + begin, chunk, MSG_DONTWAIT);
    bytes.resize(begin + std::max<ssize_t>(got, 0));
    if (got == 0) return Gone();
    if (got > 0) {
      count -= static_cast<size_t>(got);
    } else if (MustWait()) {
      RETURN_IF_ERROR(WaitFor(socket_, POLLIN, deadline));
    } else {
      return Gone();
    }
  }
  return absl::OkStatus();
}

absl::Status SocketChannel::Write(const char* data, size_t count, absl::Time deadline) {
  while (count > 0) {
    const ssize_t sent = send(socket_, data, count, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      data += sent;
      count -= static_cast<size_t>(sent);
    } else if (sent == 0 || MustWait()) {
      RETURN_IF_ERROR(WaitFor(socket_, POLLOUT, deadline));
    } else {
      return Gone();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Frame> SocketChannel::Receive(absl::Time deadline) {
  std::string prefix;
  RETURN_IF_ERROR(Read(kPrefixBytes, deadline, prefix));
  const size_t header_bytes = LoadU32(prefix.data());
  const size_t payload_bytes = LoadU32(prefix.data() + 4);
  if (header_bytes > limits_.header_bytes || payload_bytes > limits_.payload_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the candidate's process sent a message of ",
                                                   header_bytes, " + ", payload_bytes, " bytes"));
  }
  Frame frame;
  RETURN_IF_ERROR(Read(header_bytes, deadline, frame.header));
  RETURN_IF_ERROR(Read(payload_bytes, deadline, frame.payload));
  return frame;
}

absl::Status SocketChannel::Send(const Frame& frame, absl::Time deadline) {
  if (frame.header.size() > UINT32_MAX || frame.payload.size() > UINT32_MAX) {
    return absl::ResourceExhaustedError("a reply is larger than 4 GiB");
  }
  std::string begin;
  AppendU32(frame.header.size(), begin);
  AppendU32(frame.payload.size(), begin);
  begin += frame.header;
  RETURN_IF_ERROR(Write(begin.data(), begin.size(), deadline));
  return Write(frame.payload.data(), frame.payload.size(), deadline);
}

}  // namespace tritonrl::device
