// Sockets of every kind that a confined candidate must not reach.
#ifndef TRITONRL_EXEC_SANDBOX_TESTING_LISTENERS_H_
#define TRITONRL_EXEC_SANDBOX_TESTING_LISTENERS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace tritonrl {

class Listeners {
 public:
  Listeners() = default;
  ~Listeners();
  Listeners(const Listeners&) = delete;
  Listeners& operator=(const Listeners&) = delete;

  // TCP and UDP on all addresses, a stream socket by abstract name and one at `path` open to all,
  // and vsock where the kernel has it.
  absl::Status Open(const std::string& abstract_name, const std::string& path);

  // Kinds on which somebody has called since the last time.
  std::vector<std::string> Calls();

  int tcp_port() const { return tcp_port_; }
  int udp_port() const { return udp_port_; }
  unsigned vsock_port() const { return vsock_port_; }  // 0: no vsock here

 private:
  absl::Status OpenInternet(int type, int* port);
  absl::Status OpenUnix(const std::string& name, bool abstract);
  void OpenVsock();

  std::vector<std::pair<std::string, int>> sockets_;  // kind, descriptor
  std::string path_;
  int tcp_port_ = 0;
  int udp_port_ = 0;
  unsigned vsock_port_ = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SANDBOX_TESTING_LISTENERS_H_
