#include "exec/workers/staged_sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tritonrl {
namespace {

// /tmp, not $TMPDIR or $TEST_TMPDIR, which can lie below a folder closed to others.
constexpr char kFolder[] = "/tmp";
constexpr char kPrefix[] = "tritonrl-exec-";
constexpr char kLockFile[] = "lock";

absl::Status CopyPythonFiles(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(CreateDirectories(to));
  chmod(to.c_str(), 0755);
  ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(from));
  for (const std::string& name : names) {
    const std::string source = JoinPath(from, name);
    const std::string target = JoinPath(to, name);
    if (DirectoryExists(source) && name != "__pycache__") {
      RETURN_IF_ERROR(CopyPythonFiles(source, target));
    }
    if (!absl::EndsWith(name, ".py")) continue;
    ASSIGN_OR_RETURN(std::string text, ReadFile(source));
    RETURN_IF_ERROR(WriteFileAtomic(target, text));
    chmod(target.c_str(), 0644);
  }
  return absl::OkStatus();
}

// Removes copies whose owner died: nobody holds their lock. One without a lock file is just being
// made.
void RemoveStale() {
  const auto names = ListDirectory(kFolder);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (!absl::StartsWith(name, kPrefix)) continue;
    const std::string path = JoinPath(kFolder, name);
    const int lock = open(JoinPath(path, kLockFile).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (lock < 0) continue;
    if (flock(lock, LOCK_EX | LOCK_NB) == 0) (void)RemoveTree(path);
    close(lock);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<StagedSources>> StagedSources::Create(
    const std::vector<std::string>& folders) {
  RemoveStale();
  std::string path = absl::StrCat(kFolder, "/", kPrefix, "XXXXXX");
  if (mkdtemp(path.data()) == nullptr) return ErrnoStatus(errno, "make a folder", path);
  chmod(path.c_str(), 0755);
  // Locked before it gets its name, so that nobody finds it unlocked.
  const std::string lock_file = JoinPath(path, kLockFile);
  const std::string unnamed = lock_file + ".new";
  const int lock = open(unnamed.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  std::unique_ptr<StagedSources> staged(new StagedSources(path, lock));
  if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) != 0) {
    return ErrnoStatus(errno, "lock", lock_file);
  }
  RETURN_IF_ERROR(RenameFile(unnamed, lock_file));
  for (size_t i = 0; i < folders.size(); ++i) {
    RETURN_IF_ERROR(CopyPythonFiles(folders[i], JoinPath(path, absl::StrCat(i))));
  }
  return staged;
}

StagedSources::~StagedSources() {
  (void)RemoveTree(path_);
  if (lock_ >= 0) close(lock_);
}

}  // namespace tritonrl
