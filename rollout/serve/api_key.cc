#include "rollout/serve/api_key.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr size_t kShortestKey = 16;

absl::StatusOr<std::string> CheckKey(absl::string_view text, const std::string& where) {
  const std::string key(absl::StripAsciiWhitespace(text));
  if (key.size() < kShortestKey || key.find_first_of(" \t\r\n") != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(where, " must hold one key of at least ",
                                                   kShortestKey, " characters and nothing else"));
  }
  return key;
}

}  // namespace

absl::StatusOr<std::string> LoadApiKey(const std::string& file, const char* environment_value) {
  if (file.empty()) {
    if (environment_value == nullptr || *environment_value == '\0') return "";
    return CheckKey(environment_value, "the environment variable for the API key");
  }
  struct stat info;
  if (stat(file.c_str(), &info) != 0) return ErrnoStatus(errno, "read", file);
  if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(file, " holds a key and must be a plain file of this user with mode 600"));
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  return CheckKey(text, file);
}

bool HasApiKey(absl::string_view authorization, const std::string& key) {
  constexpr absl::string_view kScheme = "Bearer ";
  if (!absl::StartsWithIgnoreCase(authorization, kScheme)) return false;
  authorization.remove_prefix(kScheme.size());
  // Hashes have one length, whatever the keys'; and no early way out of the loop.
  const std::string given = Sha256Hex(absl::StripAsciiWhitespace(authorization));
  const std::string wanted = Sha256Hex(key);
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    difference = difference | static_cast<unsigned char>(given[i] ^ wanted[i]);
  }
  return difference == 0;
}

bool IsLoopback(const std::string& host) {
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  return host == "::1" || host == "localhost";
}

}  // namespace tritonrl
