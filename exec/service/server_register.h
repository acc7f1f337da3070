// The folder through which clients find servers: DIR/servers/HOST-PID.json, mode 600, one for each
// server, there while it takes work.
#ifndef TRITONRL_EXEC_SERVICE_SERVER_REGISTER_H_
#define TRITONRL_EXEC_SERVICE_SERVER_REGISTER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tritonrl {

struct ServerEntry {
  std::string address;  // "host:port"
  std::string token;
  std::string role;     // for people; clients ask the server
  int64_t started = 0;  // nanoseconds since 1970; set when it registers
};

class Registration {
 public:
  // Makes DIR/servers (mode 700) if it is missing, and the file in one step.
  static absl::StatusOr<std::unique_ptr<Registration>> Create(const std::string& dir,
                                                              const ServerEntry& entry);
  ~Registration();  // removes the file
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  const std::string& file() const { return file_; }

 private:
  explicit Registration(std::string file) : file_(std::move(file)) {}
  const std::string file_;
};

// All servers registered below `dir`, also those that were killed and could not remove their file;
// of several at one address the last that started.
// A file that is no entry, or that others may read, is passed over and named in `problems`. An
// empty list when the folder does not exist yet.
absl::StatusOr<std::vector<ServerEntry>> ReadRegister(const std::string& dir,
                                                      std::vector<std::string>* problems);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SERVICE_SERVER_REGISTER_H_
