// What servers say of themselves, for people and for programs.
#ifndef TRITONRL_EXEC_SERVICE_SERVER_STATUS_H_
#define TRITONRL_EXEC_SERVICE_SERVER_STATUS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/service/server_registry.h"
#include "exec/service/service.pb.h"

namespace tritonrl {

// Asks one server, at most until `deadline`. Unavailable: it does not answer; Unauthenticated: the
// token is not its own.
absl::StatusOr<ServerDescription> AskServer(const ServerEntry& server, absl::Time deadline);

// Some lines for people: "127.0.0.1:4711: both, interpreter, up 12 s; 1 running, ...".
std::string StatusText(const std::string& address, const ServerDescription& description);

// One line of JSON with the description's fields as service.proto names them, and the address.
std::string StatusJson(const std::string& address, const ServerDescription& description);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SERVICE_SERVER_STATUS_H_
