// Listening sockets, one of each kind that a confined candidate must not reach.
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

  // Opens TCP and UDP sockets on all addresses, Unix stream sockets at `abstract_name` and at
  // `path` (open to all users), and a vsock if the kernel has it.
  absl::Status Open(const std::string& abstract_name, const std::string& path);

  // The kinds of socket that got a connection or a datagram since the last call.
  std::vector<std::string> Calls();

  int tcp_port() const { return tcp_port_; }
  int udp_port() const { return udp_port_; }
  unsigned vsock_port() const { return vsock_port_; }  // 0: the kernel has no vsock

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
