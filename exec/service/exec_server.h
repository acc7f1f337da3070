#ifndef TRITONRL_EXEC_SERVICE_EXEC_SERVER_H_
#define TRITONRL_EXEC_SERVICE_EXEC_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/service/dispatcher.h"
#include "exec/service/server_registry.h"
#include "exec/service/service.pb.h"

// The gRPC service of exec/service/service.proto in front of a dispatcher, and its status.

namespace tritonrl {

struct ExecServerOptions {
  std::string interface = "lo";  // the network interface whose address is listened on
  int port = 0;                  // 0: any free one
  std::string token;             // of at least 32 characters
  absl::Duration max_call = absl::Minutes(20);  // longest deadline a caller gets
};

// The address of a network interface as it stands before a port: its first IPv4 address, else its
// first IPv6 one in brackets. NotFound lists the interfaces there are.
absl::StatusOr<std::string> InterfaceAddress(const std::string& interface);

class ExecServer {
 public:
  // Listens when it returns. The dispatcher must outlive the server.
  static absl::StatusOr<std::unique_ptr<ExecServer>> Start(const ExecServerOptions& options,
                                                           Dispatcher* dispatcher);
  ~ExecServer();  // refuses new work and waits for what runs; what waits is dropped
  ExecServer(const ExecServer&) = delete;
  ExecServer& operator=(const ExecServer&) = delete;

  // "127.0.0.1:41234".
  const std::string& address() const { return address_; }

  // Says NOT_SERVING to health checks, refuses new work and waits until what waits and runs has
  // its answer, at most `wait`. False when something was left; it still runs then.
  bool Drain(absl::Duration wait);

 private:
  class Service;
  struct Parts;
  explicit ExecServer(std::unique_ptr<Parts> parts);

  std::string address_;
  const std::unique_ptr<Parts> parts_;
};

// Asks one server, at most until `deadline`. Unavailable: it does not answer; Unauthenticated: the
// token is not its own.
absl::StatusOr<ServerDescription> AskServer(const ServerEntry& server, absl::Time deadline);

// Some lines for people: "127.0.0.1:4711: both, interpreter, up 12 s; 1 running, ...".
std::string StatusText(const std::string& address, const ServerDescription& description);

// One line of JSON with the description's fields as service.proto names them, and the address.
std::string StatusJson(const std::string& address, const ServerDescription& description);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SERVICE_EXEC_SERVER_H_
