#include "exec/executor/message_channel.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace tritonrl::executor {
namespace {

constexpr size_t kPrefixBytes = 4;
constexpr size_t kChunkBytes = 1 << 20;
constexpr absl::Duration kLongestWait = absl::Seconds(10);  // of one call of poll

absl::Status Gone() { return absl::UnavailableError("the other side of the channel is gone"); }

absl::Status WaitFor(int socket, int16_t events, absl::Time deadline) {
  while (true) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("no message in time");
    pollfd poll_fd{socket, events, 0};
    // The least first: one more millisecond than the infinite duration has overflows.
    const int64_t ms = absl::ToInt64Milliseconds(std::min(left, kLongestWait)) + 1;
    const int ready = poll(&poll_fd, 1, static_cast<int>(ms));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return Gone();
  }
}

bool MustWait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

union ControlBuffer {
  cmsghdr header;  // for its alignment
  char bytes[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
};

ssize_t SendOnce(int socket, const char* data, size_t count, const std::vector<int>& descriptors) {
  ControlBuffer control = {};
  iovec part = {const_cast<char*>(data), count};
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

ssize_t ReceiveOnce(int socket, char* data, size_t count, std::vector<int>* descriptors) {
  // Without a place for them Linux closes descriptors that come along.
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

// Appends `count` bytes; memory grows as they arrive, not as they were announced.
absl::Status Read(int socket, size_t count, absl::Time deadline, std::vector<int>* descriptors,
                  std::string* bytes) {
  while (count > 0) {
    const size_t chunk = std::min(count, kChunkBytes);
    const size_t begin = bytes->size();
    bytes->resize(begin + chunk);
    const ssize_t got = ReceiveOnce(socket, bytes->data() + begin, chunk, descriptors);
    bytes->resize(begin + std::max<ssize_t>(got, 0));
    if (got == 0) return Gone();
    if (got > 0) {
      count -= static_cast<size_t>(got);
    } else if (MustWait()) {
      RETURN_IF_ERROR(WaitFor(socket, POLLIN, deadline));
    } else {
      return Gone();
    }
  }
  return absl::OkStatus();
}

absl::Status TooLarge(size_t bytes, size_t max_bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("a message of ", bytes, " bytes is above ", max_bytes));
}

}  // namespace

absl::Status SendMessage(int socket, const google::protobuf::MessageLite& message, size_t max_bytes,
                         absl::Time deadline, const std::vector<int>& descriptors) {
  const size_t bytes = message.ByteSizeLong();
  if (bytes > max_bytes) return TooLarge(bytes, max_bytes);
  std::string all;
  all.reserve(kPrefixBytes + bytes);
  for (size_t i = 0; i < kPrefixBytes; ++i) all.push_back(static_cast<char>(bytes >> (8 * i)));
  if (!message.AppendToString(&all)) return absl::InternalError("a message cannot be written");
  size_t sent = 0;
  while (sent < all.size()) {
    // The descriptors come with the first byte.
    const ssize_t now = SendOnce(socket, all.data() + sent, all.size() - sent,
                                 sent == 0 ? descriptors : std::vector<int>());
    if (now > 0) {
      sent += static_cast<size_t>(now);
    } else if (now == 0 || MustWait()) {
      RETURN_IF_ERROR(WaitFor(socket, POLLOUT, deadline));
    } else {
      return Gone();
    }
  }
  return absl::OkStatus();
}

absl::Status ReceiveMessage(int socket, google::protobuf::MessageLite* message, size_t max_bytes,
                            absl::Time deadline, std::vector<int>* descriptors) {
  std::string bytes;
  RETURN_IF_ERROR(Read(socket, kPrefixBytes, deadline, descriptors, &bytes));
  size_t count = 0;
  for (size_t i = kPrefixBytes; i-- > 0;) count = count << 8 | static_cast<uint8_t>(bytes[i]);
  if (count > max_bytes) return TooLarge(count, max_bytes);
  bytes.clear();
  RETURN_IF_ERROR(Read(socket, count, deadline, descriptors, &bytes));
  if (message->ParseFromString(bytes)) return absl::OkStatus();
  return absl::InvalidArgumentError("no message of the expected type");
}

}  // namespace tritonrl::executor
