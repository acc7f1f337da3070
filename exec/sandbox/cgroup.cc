#include "exec/sandbox/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/file.h"

namespace tritonrl {
namespace {

constexpr char kPrefix[] = "tritonrl-";
constexpr int64_t kPeriodMicroseconds = 100000;  // the kernel's default

// CPU time per period in microseconds, over all cores.
int64_t Quota(double cores) {
  return std::max<int64_t>(1000, std::llround(cores * kPeriodMicroseconds));
}

// A control file needs one plain write; WriteFileAtomic would make a temporary file beside it.
bool WriteControl(const std::string& path, const std::string& value) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ok = write(fd, value.data(), value.size()) == static_cast<ssize_t>(value.size());
  close(fd);
  return ok;
}

std::string ReadOrEmpty(const std::string& path) {
  auto text = ReadFile(path);
  return text.ok() ? *text : "";
}

// The value of `key` in a file of "key value" lines; 0 if the key is missing.
int64_t Counter(const std::string& path, const std::string& key) {
  for (const absl::string_view line : absl::StrSplit(ReadOrEmpty(path), '\n')) {
    std::vector<std::string> words = absl::StrSplit(line, ' ');
    int64_t value = 0;
    if (words.size() == 2 && words[0] == key && absl::SimpleAtoi(words[1], &value)) return value;
  }
  return 0;
}

// The path of this process's group in the hierarchy of `controller` ("" for version 2). "" for the
// root, or if there is no such hierarchy.
std::string OwnGroup(const std::string& controller) {
  for (const absl::string_view line : absl::StrSplit(ReadOrEmpty("/proc/self/cgroup"), '\n')) {
    std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    for (const absl::string_view name : absl::StrSplit(parts[1], ',')) {
      if (name == controller) return parts[2] == "/" ? "" : parts[2];
    }
  }
  return "";
}

// The mount point of a hierarchy of file system `type` ("cgroup", "cgroup2") with `controller`
// (empty: any); "" if none is mounted.
std::string MountPoint(const std::string& type, const std::string& controller) {
  for (const absl::string_view line : absl::StrSplit(ReadOrEmpty("/proc/mounts"), '\n')) {
    std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words.size() < 4 || words[2] != type) continue;
    if (controller.empty()) return words[1];
    for (const absl::string_view option : absl::StrSplit(words[3], ',')) {
      if (option == controller) return words[1];
    }
  }
  return "";
}

// Removes groups whose supervisor no longer runs. rmdir fails on a group that still has processes.
void RemoveStale(const std::string& parent) {
  auto names = ListDirectory(parent);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    absl::string_view rest = name;
    int pid = 0;
    if (!absl::ConsumePrefix(&rest, kPrefix)) continue;
    if (!absl::SimpleAtoi(rest.substr(0, rest.find('-')), &pid)) continue;
    if (kill(pid, 0) != 0 && errno == ESRCH) rmdir(JoinPath(parent, name).c_str());
  }
}

// Makes a group below `parent` with a writable `control_file`. Returns its folder, or "" on
// failure.
std::string MakeGroup(const std::string& parent, const std::string& name,
                      const std::string& control_file) {
  RemoveStale(parent);
  const std::string folder = JoinPath(parent, name);
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return "";
  if (access(JoinPath(folder, control_file).c_str(), W_OK) == 0 &&
      access(JoinPath(folder, "cgroup.procs").c_str(), W_OK) == 0) {
    return folder;
  }
  rmdir(folder.c_str());
  return "";
}

std::string MakeVersion1(const std::string& controller, const std::string& name,
                         const std::string& control_file) {
  const std::string mount = MountPoint("cgroup", controller);
  if (mount.empty()) return "";
  // First tries this process's own group, so that the limits of that group also hold. The mount
  // may not contain that group's path; then the new group goes into the root of the mount.
  for (const std::string& own : {OwnGroup(controller), std::string()}) {
    if (!DirectoryExists(mount + own)) continue;
    const std::string folder = MakeGroup(mount + own, name, control_file);
    if (!folder.empty()) return folder;
  }
  return "";
}

std::string MakeVersion2(const std::string& name, const std::string& control_file) {
  const std::string mount = MountPoint("cgroup2", "");
  if (mount.empty()) return "";
  const std::string own = mount + OwnGroup("");
  // This process's own group cannot enable controllers for its children while it contains
  // processes. The loop therefore also tries the group's parent and the root of the mount.
  for (const std::string& parent : {own, DirName(own), mount}) {
    if (!DirectoryExists(parent) || parent.size() < mount.size()) continue;
    WriteControl(JoinPath(parent, "cgroup.subtree_control"), "+memory +pids");
    // A separate write: the kernel refuses "+cpu" while tasks of real-time priority run.
    WriteControl(JoinPath(parent, "cgroup.subtree_control"), "+cpu");
    const std::string folder = MakeGroup(parent, name, control_file);
    if (!folder.empty()) return folder;
  }
  return "";
}

}  // namespace

WorkerCgroup WorkerCgroup::Create(const std::string& name, const CgroupLimits& limits) {
  const std::string full = absl::StrCat(kPrefix, getpid(), "-", name);
  WorkerCgroup group;
  group.LimitByVersion1(full, limits);
  if (group.version_ == 0) group.LimitByVersion2(full, limits);
  return group;
}

void WorkerCgroup::LimitByVersion1(const std::string& name, const CgroupLimits& limits) {
  // Makes a group and writes `value` to its control file. Returns its folder, or "" on failure.
  const auto limit = [&](const std::string& controller, const std::string& file,
                         const std::string& value) -> std::string {
    const std::string folder = MakeVersion1(controller, name, file);
    if (folder.empty()) return "";
    if (!WriteControl(JoinPath(folder, file), value)) {
      rmdir(folder.c_str());
      return "";
    }
    version_ = 1;
    return folder;
  };
  if (limits.memory_bytes > 0) {
    const std::string bytes = absl::StrCat(limits.memory_bytes);
    memory_folder_ = limit("memory", "memory.limit_in_bytes", bytes);
    // This file is absent without swap accounting.
    if (limits_memory()) {
      WriteControl(JoinPath(memory_folder_, "memory.memsw.limit_in_bytes"), bytes);
    }
  }
  if (limits.processes > 0) {
    pids_folder_ = limit("pids", "pids.max", absl::StrCat(limits.processes));
  }
  if (limits.cores > 0) {
    cpu_folder_ = limit("cpu", "cpu.cfs_quota_us", absl::StrCat(Quota(limits.cores)));
    // The kernel refuses a quota above the parent group's. A group without a quota still gets an
    // even share of the parent's.
    if (!limits_cores()) share_folder_ = limit("cpu", "cpu.cfs_quota_us", "-1");
  }
}

void WorkerCgroup::LimitByVersion2(const std::string& name, const CgroupLimits& limits) {
  if (limits.memory_bytes <= 0 && limits.processes <= 0 && limits.cores <= 0) return;
  const char* control = limits.memory_bytes > 0 ? "memory.max"
                        : limits.processes > 0  ? "pids.max"
                                                : "cpu.max";
  const std::string folder = MakeVersion2(name, control);
  if (folder.empty()) return;
  const auto limit = [&](bool wanted, const char* file, const std::string& value) -> std::string {
    return wanted && WriteControl(JoinPath(folder, file), value) ? folder : "";
  };
  memory_folder_ = limit(limits.memory_bytes > 0, "memory.max", absl::StrCat(limits.memory_bytes));
  limit(limits_memory(), "memory.swap.max", "0");
  pids_folder_ = limit(limits.processes > 0, "pids.max", absl::StrCat(limits.processes));
  cpu_folder_ = limit(limits.cores > 0, "cpu.max",
                      absl::StrCat(Quota(limits.cores), " ", kPeriodMicroseconds));
  version_ = Folders().empty() ? 0 : 2;
  if (version_ == 0) rmdir(folder.c_str());
}

WorkerCgroup::WorkerCgroup(WorkerCgroup&& other) noexcept { *this = std::move(other); }

WorkerCgroup& WorkerCgroup::operator=(WorkerCgroup&& other) noexcept {
  std::swap(version_, other.version_);
  std::swap(memory_folder_, other.memory_folder_);
  std::swap(pids_folder_, other.pids_folder_);
  std::swap(cpu_folder_, other.cpu_folder_);
  std::swap(share_folder_, other.share_folder_);
  return *this;
}

WorkerCgroup::~WorkerCgroup() {
  if (version_ == 0) return;
  KillAll();
  for (const std::string& folder : Folders()) {
    // A killed process can keep its group busy for some milliseconds.
    for (int i = 0; i < 200 && rmdir(folder.c_str()) != 0 && errno == EBUSY; ++i) {
      absl::SleepFor(absl::Milliseconds(5));
    }
  }
}

std::vector<std::string> WorkerCgroup::Folders() const {
  std::set<std::string> folders = {memory_folder_, pids_folder_, cpu_folder_, share_folder_};
  folders.erase("");
  return {folders.begin(), folders.end()};
}

std::vector<std::string> WorkerCgroup::procs_files() const {
  std::vector<std::string> files;
  for (const std::string& folder : Folders()) files.push_back(JoinPath(folder, "cgroup.procs"));
  return files;
}

std::string WorkerCgroup::description() const {
  if (version_ == 0) return "no cgroup";
  std::vector<const char*> parts;
  if (limits_memory()) parts.push_back("memory");
  if (limits_processes()) parts.push_back("pids");
  if (limits_cores()) parts.push_back("cpu");
  if (!share_folder_.empty()) parts.push_back("core share");
  return absl::StrCat("cgroup v", version_, " ", absl::StrJoin(parts, "+"));
}

int64_t WorkerCgroup::OomKills() const {
  if (memory_folder_.empty()) return 0;
  return Counter(JoinPath(memory_folder_, version_ == 1 ? "memory.oom_control" : "memory.events"),
                 "oom_kill");
}

int64_t WorkerCgroup::RefusedForks() const {
  if (pids_folder_.empty()) return 0;
  return Counter(JoinPath(pids_folder_, "pids.events"), "max");
}

int64_t WorkerCgroup::Throttled() const {
  if (cpu_folder_.empty()) return 0;
  return Counter(JoinPath(cpu_folder_, "cpu.stat"), "nr_throttled");
}

void WorkerCgroup::KillAll() const {
  for (const std::string& folder : Folders()) {
    if (WriteControl(JoinPath(folder, "cgroup.kill"), "1")) continue;
    for (int i = 0; i < 200; ++i) {
      const std::string pids = ReadOrEmpty(JoinPath(folder, "cgroup.procs"));
      if (pids.empty()) break;
      for (const absl::string_view word : absl::StrSplit(pids, '\n', absl::SkipEmpty())) {
        int pid = 0;
        if (absl::SimpleAtoi(word, &pid) && pid > 1) kill(pid, SIGKILL);
      }
      absl::SleepFor(absl::Milliseconds(5));
    }
  }
}

}  // namespace tritonrl
