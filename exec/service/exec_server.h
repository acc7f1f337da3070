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

// Serves the gRPC service of exec/service/service.proto from a dispatcher, and shows the status of
// such servers.

namespace tritonrl {

struct ExecServerOptions {
  std::string interface = "lo";  // network interface on whose address the server listens
  int port = 0;                  // 0: any free port
  std::string token;             // at least 32 characters
  absl::Duration max_call = absl::Minutes(20);  // upper bound of a caller's deadline
};

// Returns the address of a network interface in the form that precedes a port: its first IPv4
// address, else its first IPv6 address in brackets. NotFound lists the interfaces of this machine.
absl::StatusOr<std::string> InterfaceAddress(const std::string& interface);

class ExecServer {
 public:
  // Starts a server, which listens when this returns. The dispatcher must outlive the server.
  // InvalidArgument: the token is too short. NotFound: see InterfaceAddress. Unavailable: the port
  // cannot be used.
  static absl::StatusOr<std::unique_ptr<ExecServer>> Start(const ExecServerOptions& options,
                                                           Dispatcher* dispatcher);
  ~ExecServer();  // refuses new jobs, drops waiting jobs and waits for running ones
  ExecServer(const ExecServer&) = delete;
  ExecServer& operator=(const ExecServer&) = delete;

  // "127.0.0.1:41234".
  const std::string& address() const { return address_; }

  // Answers health checks with NOT_SERVING, refuses new jobs, and waits at most `wait` until all
  // waiting and running jobs are answered. False if some are not; they continue.
  bool Drain(absl::Duration wait);

 private:
  class Service;
  struct Parts;
  explicit ExecServer(std::unique_ptr<Parts> parts);

  std::string address_;
  const std::unique_ptr<Parts> parts_;
};

// Calls Describe on one server, waiting at most until `deadline`. Unavailable: the server does not
// answer. Unauthenticated: the token is not that server's.
absl::StatusOr<ServerDescription> AskServer(const ServerEntry& server, absl::Time deadline);

// Returns some lines for people: "127.0.0.1:4711: both, native, up 12 s; 1 running, ...".
std::string StatusText(const std::string& address, const ServerDescription& description);

// Returns one line of JSON: the address, and the description's fields with the names of
// service.proto.
std::string StatusJson(const std::string& address, const ServerDescription& description);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SERVICE_EXEC_SERVER_H_
