#include "exec/sandbox/testing/escape_world.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "exec/sandbox/sandbox.h"
#include "exec/testing/process_tree.h"

namespace tritonrl {
namespace {

constexpr char kKeyName[] = "tritonrl-test-key";
constexpr char kVariable[] = "TRITONRL_TEST_TOKEN";

std::string Random() {
  std::random_device device;
  return absl::StrCat(absl::Hex(device(), absl::kZeroPad8), absl::Hex(device(), absl::kZeroPad8));
}

std::string ReadOrEmpty(const std::string& path) {
  const auto text = ReadFile(path);
  return text.ok() ? *text : "";
}

// Appends mode, size and change time of `path` and of all files up to `depth` folders below it.
void Describe(const std::string& path, int depth, std::string* text) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return;
  absl::StrAppend(text, path, " ", info.st_mode, " ", info.st_size, " ", info.st_ctim.tv_sec, ".",
                  info.st_ctim.tv_nsec, "\n");
  if (!S_ISDIR(info.st_mode) || depth == 0) return;
  const auto names = ListDirectory(path);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    // Other programs that use the wheels write byte code here.
    if (name != "__pycache__") Describe(JoinPath(path, name), depth - 1, text);
  }
}

// A hash of a file's bytes: an attack on the page cache changes the bytes but not the metadata.
std::string Contents(const std::string& path) {
  return absl::StrCat(path, " ", Sha256Hex(ReadOrEmpty(path)), "\n");
}

std::string FileHandle(const std::string& path) {
  alignas(file_handle) char space[sizeof(file_handle) + MAX_HANDLE_SZ];
  auto* handle = reinterpret_cast<file_handle*>(space);
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (name_to_handle_at(AT_FDCWD, path.c_str(), handle, &mount, 0) != 0) return "";
  return absl::BytesToHexString(
      absl::string_view(space, sizeof(file_handle) + handle->handle_bytes));
}

// Scheduling and limits of `pid`, which another process of the same user could change.
std::string Treatment(pid_t pid) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  sched_getaffinity(pid, sizeof(cpus), &cpus);
  rlimit files = {};
  prlimit(pid, RLIMIT_NOFILE, nullptr, &files);
  std::string state;
  for (const absl::string_view line :
       absl::StrSplit(ReadOrEmpty(absl::StrCat("/proc/", pid, "/status")), '\n')) {
    for (const char* key : {"State:", "TracerPid:", "SigIgn:", "Groups:", "Seccomp:"}) {
      if (absl::StartsWith(line, key)) absl::StrAppend(&state, line, " ");
    }
  }
  return absl::StrCat("cpus ", CPU_COUNT(&cpus), " nice ", getpriority(PRIO_PROCESS, pid),
                      " policy ", sched_getscheduler(pid), " files ", files.rlim_cur, " oom ",
                      ReadOrEmpty(absl::StrCat("/proc/", pid, "/oom_score_adj")), state);
}

int64_t SecondsAgainstBoot() {
  timespec real = {}, boot = {};
  clock_gettime(CLOCK_REALTIME, &real);
  clock_gettime(CLOCK_BOOTTIME, &boot);
  return real.tv_sec - boot.tv_sec;
}

}  // namespace

absl::StatusOr<std::unique_ptr<EscapeWorld>> EscapeWorld::Create() {
  std::unique_ptr<EscapeWorld> world(new EscapeWorld());
  world->secret_ = absl::StrCat("secret-", Random());
  world->mark_ = absl::StrCat("escape-", Random());
  world->ipc_key_ = 0x7e000000 + (getpid() & 0xffffff);
  ASSIGN_OR_RETURN(PythonEnv env, FindPythonEnv());
  world->site_packages_ = env.site_packages;
  RETURN_IF_ERROR(world->LayOutFiles());
  RETURN_IF_ERROR(world->listeners_.Open(absl::StrCat(world->folder_, "-abstract"),
                                         JoinPath(world->folder_, "socket")));
  RETURN_IF_ERROR(world->StartSentinel());
  setenv(kVariable, world->secret_.c_str(), 1);
  world->AddKey();
  world->kernel_log_ = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (world->kernel_log_ >= 0) lseek(world->kernel_log_, 0, SEEK_END);
  return world;
}

EscapeWorld::~EscapeWorld() {
  unsetenv(kVariable);
  if (kernel_log_ >= 0) close(kernel_log_);
  if (!folder_.empty()) (void)RemoveTree(folder_);
}

absl::Status EscapeWorld::LayOutFiles() {
  // In /tmp, which every user can reach. The name must not contain the mark, which is searched for.
  folder_ = "/tmp/tritonrl-bait-XXXXXX";
  if (mkdtemp(folder_.data()) == nullptr) return ErrnoStatus(errno, "make a folder", folder_);
  chmod(folder_.c_str(), 0755);
  const std::string secret_file = JoinPath(folder_, "secret");
  RETURN_IF_ERROR(WriteFileAtomic(secret_file, secret_));
  chmod(secret_file.c_str(), 0666);
  secret_handle_ = FileHandle(secret_file);
  const std::string victim = JoinPath(folder_, "victim");
  RETURN_IF_ERROR(CreateDirectories(victim));
  chmod(victim.c_str(), 0777);
  RETURN_IF_ERROR(WriteFileAtomic(JoinPath(victim, "precious"), "precious"));
  chmod(JoinPath(victim, "precious").c_str(), 0666);
  return absl::OkStatus();
}

absl::Status EscapeWorld::StartSentinel() {
  SandboxSpec spec;
  spec.kind = SandboxKind::kNone;  // changes to the candidates' user and confines no further
  SubprocessOptions options;
  options.argv = SandboxCommand(spec, {"/usr/bin/sleep", "1000"});
  options.parent_death_signal = SIGKILL;
  ASSIGN_OR_RETURN(sentinel_, Subprocess::Start(options));
  return absl::OkStatus();
}

void EscapeWorld::AddKey() {
  // A new session key ring, so that the key does not enter the ring of the parent session.
  if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) < 0) return;
  key_number_ = syscall(SYS_add_key, "user", kKeyName, secret_.data(), secret_.size(),
                        KEY_SPEC_SESSION_KEYRING);
}

void EscapeWorld::LookAtFiles(Facts* facts) const {
  Describe(folder_, 2, &(*facts)["the bait's folder"]);
  (*facts)["the precious file"] = ReadOrEmpty(JoinPath(folder_, "victim/precious"));
  std::string& checker = (*facts)["the checker's files"];
  const std::set<pid_t> ours = Descendants(getpid());
  const auto shared = ListDirectory("/tmp");
  for (const std::string& name : shared.ok() ? *shared : std::vector<std::string>()) {
    const std::string path = JoinPath("/tmp", name);
    if (!absl::StartsWith(name, "tritonrl-exec-")) continue;
    // Only folders in the command line of this process's workers: other tests have folders too.
    for (const pid_t pid : ProcessesNaming(path)) {
      if (ours.count(pid) == 0) continue;
      Describe(path, 3, &checker);
      for (const char* folder : {"0", "1"}) {
        const auto sources = ListDirectory(JoinPath(path, folder));
        if (!sources.ok()) continue;
        for (const std::string& source : *sources) {
          absl::StrAppend(&checker, Contents(JoinPath(JoinPath(path, folder), source)));
        }
      }
      break;
    }
  }
  std::string& wheels = (*facts)["the wheels"];
  for (const char* name : {"", "torch", "triton", "triton/runtime", "triton/backends/nvidia/lib"}) {
    Describe(JoinPath(site_packages_, name), 1, &wheels);
  }
  absl::StrAppend(&wheels, Contents(JoinPath(site_packages_, "torch/__init__.py")),
                  Contents("/usr/bin/python3"));
  std::string& left = (*facts)["files left behind"];
  for (const char* folder : {"/", "/tmp", "/dev", "/dev/shm", "/var/tmp", "/usr", "/opt", "/root",
                             "/usr/lib", "/usr/bin", "/etc", "/home"}) {
    const auto names = ListDirectory(folder);
    for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
      if (absl::StrContains(name, mark_) || name == "core") absl::StrAppend(&left, folder, name);
    }
  }
  for (const char* path : {"/etc/ld.so.preload", "/usr/lib/python3/dist-packages/sitecustomize.py",
                           "/etc/python3.11/sitecustomize.py", "/etc/passwd", "/etc/shadow"}) {
    Describe(path, 0, &left);
  }
}

void EscapeWorld::LookAtProcesses(Facts* facts) const {
  (*facts)["processes below us"] = absl::StrJoin(Descendants(getpid()), " ");
  (*facts)["marked processes"] = absl::StrJoin(ProcessesNaming(mark_), " ");
  (*facts)["the sentinel"] = Treatment(sentinel_->pid());
  (*facts)["the supervisor"] = Treatment(getpid());
  (*facts)["our memory"] = memory_;
}

void EscapeWorld::LookAtSystem(Facts* facts) const {
  for (const char* name :
       {"core_pattern", "modprobe", "hostname", "domainname", "sysrq", "randomize_va_space"}) {
    const std::string path = absl::StrCat("/proc/sys/kernel/", name);
    (*facts)[path] = ReadOrEmpty(path);
  }
  const std::string key = absl::StrCat(ipc_key_);
  std::string& left = (*facts)["kernel objects left behind"];
  for (const char* kind : {"shm", "sem", "msg"}) {
    const std::string table = ReadOrEmpty(absl::StrCat("/proc/sysvipc/", kind));
    if (absl::StrContains(table, key)) absl::StrAppend(&left, "System V ", kind);
  }
  if (absl::StrContains(ReadOrEmpty("/proc/keys"), mark_)) left += " a key";
  if (absl::StrContains(ReadOrEmpty("/proc/net/unix"), mark_)) left += " a socket";
}

EscapeWorld::Facts EscapeWorld::Look() const {
  Facts facts;
  LookAtFiles(&facts);
  LookAtProcesses(&facts);
  LookAtSystem(&facts);
  return facts;
}

void EscapeWorld::Remember() {
  (void)listeners_.Calls();
  (void)NewKernelLines();
  before_ = Look();
  clock_before_ = SecondsAgainstBoot();
}

std::vector<std::string> EscapeWorld::NewKernelLines() {
  std::vector<std::string> lines;
  char record[8192];
  ssize_t n = 0;
  while (kernel_log_ >= 0 && (n = read(kernel_log_, record, sizeof(record))) != 0) {
    if (n < 0 && errno == EPIPE) continue;  // the kernel has overwritten the next record
    if (n < 0) break;
    const absl::string_view text(record, n);
    if (absl::StrContains(text, mark_) || absl::StrContains(text, "sysrq:")) {
      lines.emplace_back(text);
    }
  }
  return lines;
}

std::vector<std::string> EscapeWorld::Changes() {
  std::vector<std::string> changes;
  for (const auto& [name, value] : Look()) {
    if (value == before_[name]) continue;
    changes.push_back(absl::StrCat(name, " changed from [", before_[name], "] to [", value, "]"));
  }
  if (std::abs(SecondsAgainstBoot() - clock_before_) > 2) changes.push_back("the clock was set");
  for (const std::string& kind : listeners_.Calls()) {
    changes.push_back(absl::StrCat("somebody called over ", kind));
  }
  for (const std::string& line : NewKernelLines()) {
    changes.push_back(absl::StrCat("the kernel's log says: ", line));
  }
  return changes;
}

bool EscapeWorld::Tells(const std::string& text) const {
  return absl::StrContains(text, secret_.substr(7));
}

std::string EscapeWorld::Parameters() const {
  struct stat root = {};
  stat("/", &root);
  return nlohmann::json{{"secret_file", JoinPath(folder_, "secret")},
                        {"secret_handle", secret_handle_},
                        {"victim_folder", JoinPath(folder_, "victim")},
                        {"socket_path", JoinPath(folder_, "socket")},
                        {"abstract_name", absl::StrCat(folder_, "-abstract")},
                        {"mark", mark_},
                        {"root_device", {major(root.st_dev), minor(root.st_dev)}},
                        {"sentinel", sentinel_->pid()},
                        {"supervisor", getpid()},
                        {"address", reinterpret_cast<uint64_t>(memory_)},
                        {"ipc_key", ipc_key_},
                        {"key_name", kKeyName},
                        {"key_number", key_number_},
                        {"tcp_port", listeners_.tcp_port()},
                        {"udp_port", listeners_.udp_port()},
                        {"vsock_port", listeners_.vsock_port()}}
      .dump();
}

}  // namespace tritonrl
