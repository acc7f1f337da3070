// One client's connection, with limits on the time and bytes of a request.
#ifndef TRITONRL_ROLLOUT_SERVE_HTTP_SOCKET_STREAM_H_
#define TRITONRL_ROLLOUT_SERVE_HTTP_SOCKET_STREAM_H_

#include <httplib.h>

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace tritonrl {

// httplib's own stream has a timeout for each single read, so a client that sends one byte now and
// then holds its thread for ever; and it reads lines of any length. Here a whole request has one
// deadline and a maximum number of bytes. Does not own the socket.
class SocketStream : public httplib::Stream {
 public:
  SocketStream(int fd, absl::Duration write_timeout) : fd_(fd), write_timeout_(write_timeout) {}

  // Waits for the first byte of a request; false if none arrives before `deadline`, or if the
  // connection has ended.
  bool WaitForRequest(absl::Time deadline);
  // From now on `max_bytes` can be read, until `deadline`; after either limit reads fail.
  void BeginRequest(absl::Time deadline, int64_t max_bytes);
  // Allows `more_bytes` additional bytes to be read.
  void Allow(int64_t more_bytes) { allowed_ += more_bytes; }

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* data, size_t size) override;
  // Writes all bytes, or fails after the write timeout.
  ssize_t write(const char* data, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  // httplib only compares it with the limit of select(), which is not used here.
  socket_t socket() const override { return 0; }

 private:
  bool FillBuffer();

  const int fd_;
  const absl::Duration write_timeout_;
  absl::Time read_deadline_ = absl::InfinitePast();
  int64_t allowed_ = 0;
  std::string buffer_;  // Received bytes; those from next_ on are not yet read.
  size_t next_ = 0;
};

// Waits until `fd` has one of the poll events `events`, or is broken. False if the deadline passes
// first.
bool WaitForSocket(int fd, short events, absl::Time deadline);

// Whether the peer has closed or lost the connection.
bool PeerGone(int fd);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_HTTP_SOCKET_STREAM_H_
