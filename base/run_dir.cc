#include "base/run_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/program.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace tritonrl {
namespace {

// Locks the lock file; an error names the process that holds it.
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

std::string FirstDifference(const std::string& before, const std::string& after) {
  std::vector<std::string> a = absl::StrSplit(before, '\n'), b = absl::StrSplit(after, '\n');
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    std::string left = i < a.size() ? a[i] : "(nothing)", right = i < b.size() ? b[i] : "(nothing)";
    if (left != right) {
      return absl::StrCat("line ", i + 1, " was '", left, "' and is now '", right, "'");
    }
  }
  return "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunDir>> RunDir::Open(const std::string& path, Mode mode) {
  bool holds_run = FileExists(path + "/config.textproto");
  if (holds_run && mode == Mode::kCreate) {
    return absl::AlreadyExistsError(
        absl::StrCat("run folder ", path, " already holds a run; choose another, or resume it"));
  }
  if (!holds_run && mode == Mode::kResume) {
    return absl::NotFoundError(absl::StrCat("run folder ", path, " holds no run to resume"));
  }
  RETURN_IF_ERROR(CreateDirectories(path));
  ASSIGN_OR_RETURN(int lock, TakeLock(path));
  std::unique_ptr<RunDir> dir(new RunDir(path, holds_run, lock));
  for (const std::string& folder :
       {dir->samples_dir(), dir->checkpoints_dir(), dir->tensorboard_dir()}) {
    RETURN_IF_ERROR(CreateDirectories(folder));
  }
  return dir;
}

absl::Status RunDir::WriteConfig(absl::string_view text_proto) {
  if (!resumed_) return WriteFileAtomic(config_path(), text_proto);
  ASSIGN_OR_RETURN(std::string before, ReadFile(config_path()));
  if (before == text_proto) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("run folder ", path_, " was begun with another configuration (",
                   FirstDifference(before, std::string(text_proto)),
                   "); use the same configuration to go on, or another folder to begin anew"));
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
