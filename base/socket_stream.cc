#include "base/socket_stream.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr size_t kChunkBytes = 1 << 20;
constexpr absl::Duration kLongestWait = absl::Seconds(10);  // of one call of poll

bool MustWait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

union ControlBuffer {
  cmsghdr header;  // for its alignment
  char bytes[CMSG_SPACE(kMaxSentDescriptors * sizeof(int))];
};

ssize_t SendNow(int socket, absl::string_view data, const std::vector<int>& descriptors) {
  ControlBuffer control = {};
  iovec part = {const_cast<char*>(data.data()), data.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    const size_t bytes = descriptors.size() * sizeof(int);
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(header), descriptors.data(), bytes);
  }
  return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

ssize_t ReceiveNow(int socket, char* data, size_t count, std::vector<int>* descriptors) {
  if (descriptors == nullptr) return recv(socket, data, count, MSG_DONTWAIT);
  ControlBuffer control = {};
  iovec part = {data, count};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  const ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return got;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t bytes = c->cmsg_len - CMSG_LEN(0);
    const size_t begin = descriptors->size();
    descriptors->resize(begin + bytes / sizeof(int));
    memcpy(descriptors->data() + begin, CMSG_DATA(c), bytes);
  }
  return got;
}

absl::Status SocketStream::Gone() const {
  return absl::UnavailableError(absl::StrCat(peer_, " closed its connection"));
}

absl::Status SocketStream::WaitFor(int16_t events, absl::Time deadline) const {
  while (true) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat(peer_, " did not finish in time"));
    }
    pollfd poll_fd{socket_, events, 0};
    // The least first: one more millisecond than the infinite duration has overflows.
    const int64_t ms = absl::ToInt64Milliseconds(std::min(left, kLongestWait)) + 1;
    const int ready = poll(&poll_fd, 1, static_cast<int>(ms));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return Gone();
  }
}

absl::Status SocketStream::Read(size_t count, absl::Time deadline, std::string* bytes,
                                std::vector<int>* descriptors) const {
  while (count > 0) {
    const size_t chunk = std::min(count, kChunkBytes);
    const size_t begin = bytes->size();
    bytes->resize(begin + chunk);
    const ssize_t got = ReceiveNow(socket_, bytes->data() + begin, chunk, descriptors);
    bytes->resize(begin + std::max<ssize_t>(got, 0));
    if (got > 0) {
      count -= static_cast<size_t>(got);
    } else if (got < 0 && MustWait()) {
      RETURN_IF_ERROR(WaitFor(POLLIN, deadline));
    } else {
      return Gone();
    }
  }
  return absl::OkStatus();
}

absl::Status SocketStream::Write(absl::string_view bytes, absl::Time deadline,
                                 const std::vector<int>& descriptors) const {
  if (descriptors.size() > kMaxSentDescriptors) {
    return absl::InvalidArgumentError(absl::StrCat("too many descriptors for ", peer_));
  }
  bool is_first = true;
  while (!bytes.empty()) {
    const ssize_t sent = SendNow(socket_, bytes, is_first ? descriptors : std::vector<int>());
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
      is_first = false;
    } else if (sent == 0 || MustWait()) {
      RETURN_IF_ERROR(WaitFor(POLLOUT, deadline));
    } else {
      return Gone();
    }
  }
  return absl::OkStatus();
}

void AppendLength(uint32_t length, std::string* bytes) {
  for (size_t i = 0; i < kLengthBytes; ++i) bytes->push_back(static_cast<char>(length >> (8 * i)));
}

uint32_t LengthAt(const char* bytes) {
  uint32_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | static_cast<uint8_t>(bytes[i]);
  return length;
}

}  // namespace tritonrl
