#include "base/run_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/program.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

// Locks the lock file and writes the process id to it; an error names the process that holds it.
absl::StatusOr<int> TakeLock(const std::string& folder) {
  std::string path = folder + "/.lock";
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, "write", path);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    char holder[32] = {};
    ssize_t n = read(fd, holder, sizeof(holder) - 1);
    close(fd);
    return absl::FailedPreconditionError(
        absl::StrCat("run folder ", folder, " is in use by process ", n > 0 ? holder : "(unknown)",
                     "; wait for it, or choose another folder"));
  }
  std::string pid = absl::StrCat(getpid());
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) < 0) {
    absl::Status status = ErrnoStatus(errno, "write", path);
    close(fd);
    return status;
  }
  return fd;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunDir>> RunDir::Open(const std::string& path, bool resume) {
  const bool holds_run = FileExists(path + "/config.textproto");
  if (holds_run && !resume) {
    return absl::AlreadyExistsError(
        absl::StrCat("run folder ", path, " already holds a run; choose another, or resume it"));
  }
  RETURN_IF_ERROR(CreateDirectories(path));
  ASSIGN_OR_RETURN(int lock, TakeLock(path));
  std::unique_ptr<RunDir> dir(new RunDir(path, holds_run, lock));
  for (const char* folder : {"/samples", "/checkpoints", "/tensorboard"}) {
    RETURN_IF_ERROR(CreateDirectories(path + folder));
  }
  return dir;
}

absl::Status RunDir::WriteVersions(const std::map<std::string, std::string>& entries) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  if (FileExists(versions_path())) {
    ASSIGN_OR_RETURN(std::string text, ReadFile(versions_path()));
    list = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!list.is_array()) list = nlohmann::ordered_json::array();
  }
  nlohmann::ordered_json entry;
  entry["version"] = Version();
  absl::StatusOr<std::string> program = ProgramPath();
  entry["program"] = program.ok() ? BaseName(*program) : "unknown";
  entry["started"] = absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone());
  utsname name;
  if (uname(&name) == 0) {
    entry["host"] = name.nodename;
    entry["kernel"] = name.release;
  }
  entry["processors"] = std::thread::hardware_concurrency();
  entry["compiler"] = "g++ " __VERSION__;
  for (const auto& [key, value] : entries) entry[key] = value;
  list.push_back(entry);
  return WriteFileAtomic(versions_path(), list.dump(2) + "\n");
}

}  // namespace tritonrl
