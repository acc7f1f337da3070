// One client's connection, with limits on how long and how much it may send for a request.
#ifndef TRITONRL_ROLLOUT_SERVE_HTTP_SOCKET_STREAM_H_
#define TRITONRL_ROLLOUT_SERVE_HTTP_SOCKET_STREAM_H_

#include <httplib.h>

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace tritonrl {

// The library's own stream allows each single read its time, so that a client which sends one byte
// now and then holds its thread for ever; and it reads lines without a limit. Here a request as a
// whole has a deadline and a number of bytes. Does not own the socket.
class SocketStream : public httplib::Stream {
 public:
  SocketStream(int fd, absl::Duration write_timeout) : fd_(fd), write_timeout_(write_timeout) {}

  // Waits for the first byte of a request; false if none came until `deadline`, or at the end of
  // the connection.
  bool WaitForRequest(absl::Time deadline);
  // From here on `max_bytes` can be read, until `deadline`; then reading fails.
  void BeginRequest(absl::Time deadline, int64_t max_bytes);
  // Bytes that can be read in addition.
  void Allow(int64_t more_bytes) { allowed_ += more_bytes; }

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* data, size_t size) override;
  // Writes all of it, or fails when that took longer than the write timeout.
  ssize_t write(const char* data, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  // The library asks only to compare it with the limit of select(), which is not used here.
  socket_t socket() const override { return 0; }

 private:
  bool FillBuffer();

  const int fd_;
  const absl::Duration write_timeout_;
  absl::Time read_deadline_ = absl::InfinitePast();
  int64_t allowed_ = 0;
  std::string buffer_;  // Received and not yet read: from next_ on.
  size_t next_ = 0;
};

// Waits until `fd` has one of `events` (of poll), is broken, or the deadline has passed; false in
// the last case.
bool WaitForSocket(int fd, short events, absl::Time deadline);

// Whether the other side has closed the connection or gone away.
bool PeerGone(int fd);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_HTTP_SOCKET_STREAM_H_
