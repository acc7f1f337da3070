#include "exec/service/server_register.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "exec/service/private_file.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
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

absl::StatusOr<std::unique_ptr<Registration>> Registration::Create(const std::string& dir,
                                                                   const ServerEntry& entry) {
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
  return std::unique_ptr<Registration>(new Registration(file));
}

Registration::~Registration() { unlink(file_.c_str()); }

absl::StatusOr<std::vector<ServerEntry>> ReadRegister(const std::string& dir,
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
    // A killed server leaves its file, and its port may have gone to another since.
    ServerEntry& known = entries[entry.address];
    if (known.address.empty() || known.started < entry.started) known = std::move(entry);
  }
  std::vector<ServerEntry> list;
  list.reserve(entries.size());
  for (auto& [address, entry] : entries) list.push_back(std::move(entry));
  return list;
}

}  // namespace tritonrl
