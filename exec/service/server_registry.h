#ifndef TRITONRL_EXEC_SERVICE_SERVER_REGISTRY_H_
#define TRITONRL_EXEC_SERVICE_SERVER_REGISTRY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Small files that only their owner may read: tokens, and what holds one.
//
// The folder through which clients find servers: DIR/servers/HOST-PID.json, mode 600, one for each
// server, there while it takes work.

namespace tritonrl {

// Writes a file of mode 600 in one step: it is there whole or not at all.
absl::Status WritePrivateFile(const std::string& path, absl::string_view contents);

// Reads at most 64 KiB. PermissionDenied when the file belongs to another user or others may read
// or write it; links are not followed.
absl::StatusOr<std::string> ReadPrivateFile(const std::string& path);

// 256 random bits as 64 hex digits.
absl::StatusOr<std::string> NewToken();

// The token in a private file, without white space around it; at least 32 characters. With `create`
// a missing file is made with a new token.
absl::StatusOr<std::string> TokenFromFile(const std::string& path, bool create);

// Takes the same time wherever two tokens differ.
bool EqualTokens(absl::string_view a, absl::string_view b);

struct ServerEntry {
  std::string address;  // "host:port"
  std::string token;
  std::string role;     // for people; clients ask the server
  int64_t started = 0;  // nanoseconds since 1970; set when it registers
};

class ServerRegistration {
 public:
  // Makes DIR/servers (mode 700) if it is missing, and the file in one step.
  static absl::StatusOr<std::unique_ptr<ServerRegistration>> Create(const std::string& dir,
                                                                    const ServerEntry& entry);
  ~ServerRegistration();  // removes the file
  ServerRegistration(const ServerRegistration&) = delete;
  ServerRegistration& operator=(const ServerRegistration&) = delete;

  const std::string& file() const { return file_; }

 private:
  explicit ServerRegistration(std::string file) : file_(std::move(file)) {}
  const std::string file_;
};

// All servers registered below `dir`, also those that were killed and could not remove their file;
// of several at one address the last that started.
// A file that is no entry, or that others may read, is passed over and named in `problems`. An
// empty list when the folder does not exist yet.
absl::StatusOr<std::vector<ServerEntry>> ReadServerRegistry(const std::string& dir,
                                                            std::vector<std::string>* problems);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SERVICE_SERVER_REGISTRY_H_
