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

// Tokens in files that only their owner may read, and the registry through which clients find
// servers: DIR/servers/HOST-PID.json, mode 600, one file for each server that accepts jobs.

namespace tritonrl {

// Writes a file of mode 600 atomically.
absl::Status WritePrivateFile(const std::string& path, absl::string_view contents);

// Reads at most 64 KiB. Does not follow links. PermissionDenied: the file is not a plain file of
// this user, or others may access it.
absl::StatusOr<std::string> ReadPrivateFile(const std::string& path);

// Returns 256 random bits as 64 hex digits.
absl::StatusOr<std::string> NewToken();

// Returns the token in a private file, without surrounding white space. `create`: a missing file is
// created with a new token. InvalidArgument: the file does not hold one token of at least 32
// characters. Further errors are those of ReadPrivateFile.
absl::StatusOr<std::string> TokenFromFile(const std::string& path, bool create);

// True if the tokens are equal. Takes the same time wherever they differ.
bool EqualTokens(absl::string_view a, absl::string_view b);

struct ServerEntry {
  std::string address;  // "host:port"
  std::string token;
  std::string role;     // for people; clients ask the server itself
  int64_t started = 0;  // nanoseconds since 1970; Create sets it in the file
};

// A server's file in the registry, which exists as long as this object.
class ServerRegistration {
 public:
  // Creates DIR/servers (mode 700) if it is missing, and writes the file atomically.
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

// Returns all servers registered below `dir`, including killed servers, which could not remove
// their file. Of several entries with one address it returns the last started. Skips a file that is
// no entry or that others may read, and names it in `problems`. Returns an empty list if the folder
// does not exist.
absl::StatusOr<std::vector<ServerEntry>> ReadServerRegistry(const std::string& dir,
                                                            std::vector<std::string>* problems);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SERVICE_SERVER_REGISTRY_H_
