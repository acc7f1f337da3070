#include "exec/sandbox/testing/listeners.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr int kFlags = SOCK_CLOEXEC | SOCK_NONBLOCK;

}  // namespace

Listeners::~Listeners() {
  for (const auto& [kind, fd] : sockets_) close(fd);
  if (!path_.empty()) unlink(path_.c_str());
}

absl::Status Listeners::Open(const std::string& abstract_name, const std::string& path) {
  RETURN_IF_ERROR(OpenInternet(SOCK_STREAM, &tcp_port_));
  RETURN_IF_ERROR(OpenInternet(SOCK_DGRAM, &udp_port_));
  RETURN_IF_ERROR(OpenUnix(abstract_name, /*abstract=*/true));
  path_ = path;
  RETURN_IF_ERROR(OpenUnix(path, /*abstract=*/false));
  OpenVsock();
  return absl::OkStatus();
}

absl::Status Listeners::OpenInternet(int type, int* port) {
  const int fd = socket(AF_INET, type | kFlags, 0);
  if (fd < 0) return ErrnoStatus(errno, "make", "a socket");
  sockets_.emplace_back(type == SOCK_STREAM ? "TCP" : "UDP", fd);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof(address);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      (type == SOCK_STREAM && listen(fd, 8) != 0) ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return ErrnoStatus(errno, "listen on", "a free port");
  }
  *port = ntohs(address.sin_port);
  return absl::OkStatus();
}

absl::Status Listeners::OpenUnix(const std::string& name, bool abstract) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | kFlags, 0);
  if (fd < 0) return ErrnoStatus(errno, "make", "a socket");
  sockets_.emplace_back(abstract ? "abstract socket" : "socket by path", fd);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // An abstract name begins with a zero byte.
  memcpy(address.sun_path + (abstract ? 1 : 0), name.data(), name.size());
  const socklen_t size = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd, 8) != 0) {
    return ErrnoStatus(errno, "listen on", name);
  }
  if (!abstract) chmod(name.c_str(), 0777);
  return absl::OkStatus();
}

void Listeners::OpenVsock() {
  const int fd = socket(AF_VSOCK, SOCK_STREAM | kFlags, 0);
  if (fd < 0) return;
  sockaddr_vm address = {};
  address.svm_family = AF_VSOCK;
  address.svm_cid = VMADDR_CID_ANY;
  address.svm_port = VMADDR_PORT_ANY;
  socklen_t size = sizeof(address);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd, 8) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    close(fd);
    return;
  }
  vsock_port_ = address.svm_port;
  sockets_.emplace_back("vsock", fd);
}

std::vector<std::string> Listeners::Calls() {
  std::vector<std::string> calls;
  for (const auto& [kind, fd] : sockets_) {
    char data[64];
    if (kind == "UDP") {
      if (recv(fd, data, sizeof(data), 0) >= 0) calls.push_back(kind);
      continue;
    }
    const int client = accept(fd, nullptr, nullptr);
    if (client < 0) continue;
    close(client);
    calls.push_back(kind);
  }
  return calls;
}

}  // namespace tritonrl
