#include "exec/service/server_registry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

namespace {

constexpr int64_t kMaxBytes = 64 << 10;
constexpr size_t kMinTokenLength = 32;

}  // namespace

absl::Status WritePrivateFile(const std::string& path, absl::string_view contents) {
  return WriteFileAtomic(path, contents, /*mode=*/0600);
}

absl::StatusOr<std::string> ReadPrivateFile(const std::string& path) {
  const ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info;
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "read", path);
  if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, " holds a token and must be a plain file of this user with mode 600"));
  }
  std::string text(std::min<int64_t>(info.st_size, kMaxBytes), '\0');
  RETURN_IF_ERROR(ReadAt(fd.get(), 0, static_cast<int64_t>(text.size()), text.data(), path));
  return text;
}

absl::StatusOr<std::string> NewToken() {
  unsigned char bytes[32];
  if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) {
    return ErrnoStatus(errno, "read", "random bytes");
  }
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes), sizeof(bytes)));
}

absl::StatusOr<std::string> TokenFromFile(const std::string& path, bool create) {
  if (create && !FileExists(path)) {
    ASSIGN_OR_RETURN(const std::string token, NewToken());
    RETURN_IF_ERROR(WritePrivateFile(path, token + "\n"));
  }
  ASSIGN_OR_RETURN(const std::string text, ReadPrivateFile(path));
  std::string token(absl::StripAsciiWhitespace(text));
  if (token.size() < kMinTokenLength || token.find_first_of(" \t\r\n") != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(path, " must hold one token of at least ",
                                                   kMinTokenLength,
                                                   " characters and nothing else"));
  }
  return token;
}

bool EqualTokens(absl::string_view a, absl::string_view b) {
  // Hashes have a fixed length, and the loop has no early exit, so the time reveals neither the
  // length of a token nor the position of a difference.
  const std::string x = Sha256Hex(a);
  const std::string y = Sha256Hex(b);
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    difference = difference | static_cast<unsigned char>(x[i] ^ y[i]);
  }
  return difference == 0;
}

namespace {

using Json = nlohmann::ordered_json;

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return "host";
  return name;
}

std::string FolderOf(const std::string& dir) { return JoinPath(dir, "servers"); }

std::string Text(const Json& json, const char* name) {
  const auto member = json.find(name);
  return member != json.end() && member->is_string() ? member->get<std::string>() : "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerRegistration>> ServerRegistration::Create(
    const std::string& dir, const ServerEntry& entry) {
  RETURN_IF_ERROR(CreateDirectories(dir));
  const std::string folder = FolderOf(dir);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return ErrnoStatus(errno, "create folder", folder);
  }
  const Json json = {{"address", entry.address}, {"token", entry.token},
                     {"role", entry.role},       {"host", HostName()},
                     {"pid", getpid()},          {"started", absl::GetCurrentTimeNanos()}};
  const std::string file = JoinPath(folder, absl::StrCat(HostName(), "-", getpid(), ".json"));
  RETURN_IF_ERROR(WritePrivateFile(file, json.dump(2) + "\n"));
  return std::unique_ptr<ServerRegistration>(new ServerRegistration(file));
}

ServerRegistration::~ServerRegistration() { unlink(file_.c_str()); }

absl::StatusOr<std::vector<ServerEntry>> ReadServerRegistry(const std::string& dir,
                                                            std::vector<std::string>* problems) {
  std::map<std::string, ServerEntry> entries;  // by address
  const std::string folder = FolderOf(dir);
  if (!DirectoryExists(folder)) return std::vector<ServerEntry>();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, ".json")) continue;
    const std::string file = JoinPath(folder, name);
    const absl::StatusOr<std::string> text = ReadPrivateFile(file);
    if (absl::IsNotFound(text.status())) continue;  // its server has just ended
    if (!text.ok()) {
      problems->push_back(Message(text.status()));
      continue;
    }
    const Json json = Json::parse(*text, /*cb=*/nullptr, /*allow_exceptions=*/false);
    ServerEntry entry;
    if (json.is_object()) {
      entry = {.address = Text(json, "address"),
               .token = Text(json, "token"),
               .role = Text(json, "role")};
      const auto started = json.find("started");
      if (started != json.end() && started->is_number_integer()) {
        entry.started = started->get<int64_t>();
      }
    }
    if (entry.address.empty() || entry.token.empty()) {
      problems->push_back(absl::StrCat(file, " does not describe a server; remove it"));
      continue;
    }
    // A killed server leaves its file, and a new server may have its port since.
    ServerEntry& known = entries[entry.address];
    if (known.address.empty() || known.started < entry.started) known = std::move(entry);
  }
  std::vector<ServerEntry> list;
  list.reserve(entries.size());
  for (auto& [address, entry] : entries) list.push_back(std::move(entry));
  return list;
}

}  // namespace tritonrl
