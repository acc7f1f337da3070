#include "rollout/serve/http/socket_stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "absl/time/clock.h"

namespace tritonrl {
namespace {

constexpr size_t kBufferBytes = 16 << 10;

void AddressOf(const sockaddr_storage& address, std::string* ip, int* port) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    *port = ntohs(v4.sin_port);
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    *port = ntohs(v6.sin6_port);
  }
  *ip = text;
}

}  // namespace

bool WaitForSocket(int fd, short events, absl::Time deadline) {
  while (true) {
    const absl::Duration left = std::max(deadline - absl::Now(), absl::ZeroDuration());
    // Rounded up, so that the loop does not spin through the last millisecond.
    const int64_t ms = absl::ToInt64Milliseconds(std::min(left, absl::Hours(1))) + 1;
    pollfd entry = {fd, events, 0};
    const int ready = poll(&entry, 1, left == absl::ZeroDuration() ? 0 : static_cast<int>(ms));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // The next call on `fd` reports the error.
    if (ready == 0 && absl::Now() >= deadline) return false;
  }
}

bool PeerGone(int fd) {
  pollfd entry = {fd, POLLRDHUP, 0};
  return poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

bool SocketStream::WaitForRequest(absl::Time deadline) {
  return next_ < buffer_.size() || WaitForSocket(fd_, POLLIN, deadline);
}

void SocketStream::BeginRequest(absl::Time deadline, int64_t max_bytes) {
  read_deadline_ = deadline;
  allowed_ = max_bytes;
}

bool SocketStream::is_readable() const {
  return next_ < buffer_.size() || WaitForSocket(fd_, POLLIN, read_deadline_);
}

bool SocketStream::is_writable() const {
  return WaitForSocket(fd_, POLLOUT, absl::Now() + write_timeout_);
}

bool SocketStream::FillBuffer() {
  buffer_.resize(kBufferBytes);
  next_ = 0;
  ssize_t n = -1;
  while (n < 0) {
    if (absl::Now() >= read_deadline_) break;
    n = recv(fd_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (n >= 0) break;
    if (errno == EINTR) continue;
    if (errno != EAGAIN || !WaitForSocket(fd_, POLLIN, read_deadline_)) break;
  }
  buffer_.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return n > 0;
}

ssize_t SocketStream::read(char* data, size_t size) {
  if (allowed_ <= 0 || size == 0) return -1;
  if (next_ == buffer_.size() && !FillBuffer()) return -1;
  const size_t n = std::min({size, buffer_.size() - next_, static_cast<size_t>(allowed_)});
  memcpy(data, buffer_.data() + next_, n);
  next_ += n;
  allowed_ -= static_cast<int64_t>(n);
  return static_cast<ssize_t>(n);
}

ssize_t SocketStream::write(const char* data, size_t size) {
  const absl::Time deadline = absl::Now() + write_timeout_;
  size_t done = 0;
  while (done < size) {
    const ssize_t n = send(fd_, data + done, size - done, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (errno == EAGAIN) {
      if (!WaitForSocket(fd_, POLLOUT, deadline)) return -1;
    } else if (errno != EINTR) {
      return -1;
    }
    if (done < size && absl::Now() >= deadline) return -1;
  }
  return static_cast<ssize_t>(size);
}

void SocketStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    AddressOf(address, &ip, &port);
  }
}

void SocketStream::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    AddressOf(address, &ip, &port);
  }
}

}  // namespace tritonrl
