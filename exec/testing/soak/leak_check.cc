#include "exec/testing/soak/leak_check.h"

#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "exec/sandbox/sandbox.h"
#include "exec/testing/process_tree.h"

namespace tritonrl {
namespace {

std::vector<std::string> NamesIn(const std::string& folder) {
  const auto names = ListDirectory(folder);
  return names.ok() ? *names : std::vector<std::string>();
}

// Shared memory files of the candidates' user on the host, outside any sandbox.
std::set<std::string> SharedMemoryOfCandidates() {
  std::set<std::string> found;
  for (const std::string& name : NamesIn("/dev/shm")) {
    struct stat info;
    const std::string path = JoinPath("/dev/shm", name);
    if (lstat(path.c_str(), &info) == 0 && info.st_uid == kSandboxUid) found.insert(path);
  }
  return found;
}

// Appends the control groups named after this process, up to `depth` folders below `folder`.
void FindGroups(const std::string& folder, int depth, std::vector<std::string>* found) {
  for (const std::string& name : NamesIn(folder)) {
    const std::string path = JoinPath(folder, name);
    if (absl::StartsWith(name, absl::StrCat("tritonrl-", getpid(), "-"))) found->push_back(path);
    if (depth > 0 && DirectoryExists(path)) FindGroups(path, depth - 1, found);
  }
}

}  // namespace

LeakCheck::LeakCheck()
    : shared_memory_before_(SharedMemoryOfCandidates()), children_before_(Descendants(getpid())) {}

void LeakCheck::NotePool() {
  const std::set<pid_t> ours = Descendants(getpid());
  for (const std::string& name : NamesIn("/tmp")) {
    const std::string path = JoinPath("/tmp", name);
    if (!absl::StartsWith(name, "tritonrl-exec-")) continue;
    for (const pid_t pid : ProcessesNaming(path)) {
      if (ours.count(pid) != 0) staged_.insert(path);
    }
  }
}

std::vector<std::string> LeakCheck::Find() const {
  std::vector<std::string> left;
  for (const std::string& path : SharedMemoryOfCandidates()) {
    if (shared_memory_before_.count(path) == 0) left.push_back(path);
  }
  for (const std::string& path : staged_) {
    if (FileExists(path)) left.push_back(path);
  }
  for (const pid_t pid : Descendants(getpid())) {
    if (children_before_.count(pid) == 0) left.push_back(absl::StrCat("process ", pid));
  }
  FindGroups("/sys/fs/cgroup", 4, &left);
  return left;
}

}  // namespace tritonrl
