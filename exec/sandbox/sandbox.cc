#include "exec/sandbox/sandbox.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr char kSetpriv[] = "/usr/bin/setpriv";

constexpr char kBwrapVariable[] = "TRITONRL_BWRAP";

// The shell joins the cgroups, then replaces itself by the program, which keeps the shell's pid. A
// process that is moved later would already have children outside the groups.
constexpr char kJoinScript[] =
    "for file in $1; do echo $$ > \"$file\" || exit 97; done; shift; exec \"$@\"";

void Append(std::vector<std::string>* argv, std::initializer_list<std::string> more) {
  argv->insert(argv->end(), more);
}

void AppendDropUid(SandboxKind kind, std::vector<std::string>* argv) {
  if (geteuid() != 0) return;
  const std::string uid = absl::StrCat(kSandboxUid);
  Append(argv, {kSetpriv, "--reuid", uid, "--regid", uid, "--clear-groups"});
  // Bubblewrap empties these sets itself, inside the user namespace that it must first be able to
  // make.
  if (kind == SandboxKind::kNone) {
    Append(argv, {"--inh-caps", "-all", "--bounding-set", "-all", "--no-new-privs"});
  }
}

void AppendMounts(const SandboxSpec& spec, std::vector<std::string>* argv) {
  Append(argv, {"--ro-bind", "/usr", "/usr"});
  // On merged-usr systems these paths are symbolic links, on other systems folders.
  for (const char* name : {"lib", "lib64", "lib32", "bin", "sbin"}) {
    const std::string path = absl::StrCat("/", name);
    struct stat info;
    if (lstat(path.c_str(), &info) != 0) continue;
    if (S_ISLNK(info.st_mode)) {
      Append(argv, {"--symlink", absl::StrCat("usr/", name), path});
    } else {
      Append(argv, {"--ro-bind", path, path});
    }
  }
  for (const char* file : {"/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"}) {
    Append(argv, {"--ro-bind-try", file, file});
  }
  Append(argv, {"--proc", "/proc", "--dev", "/dev"});
  for (const std::string& device : spec.devices) Append(argv, {"--dev-bind", device, device});
  Append(argv, {"--size", absl::StrCat(spec.shm_bytes), "--tmpfs", "/dev/shm"});
  Append(argv, {"--size", absl::StrCat(spec.tmp_bytes), "--tmpfs", "/tmp"});
  for (const auto& [source, target] : spec.read_only) {
    Append(argv, {"--ro-bind", source, target});
  }
  Append(argv, {"--remount-ro", "/dev", "--remount-ro", "/"});
}

void AppendConfinement(std::vector<std::string>* argv) {
  // The zygote needs the two added capabilities, which are valid only inside the sandbox, to make a
  // pid, mount and IPC namespace for each job. The job drops them before any candidate code runs.
  Append(argv, {"--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent",
                "--new-session", "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--cap-add",
                "CAP_SETPCAP", "--clearenv", "--chdir", "/tmp"});
}

std::string Explain(const std::string& error) {
  if (error.find("amespace") != std::string::npos || error.find("uid map") != std::string::npos) {
    return "user namespaces are switched off or forbidden here (a container started without "
           "them?); allow them (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces"
           ", kernel.apparmor_restrict_unprivileged_userns=0)";
  }
  if (error.find("setpriv") != std::string::npos) {
    return absl::StrCat("the user cannot be changed to ", kSandboxUid,
                        " (a container that maps only one user?), and candidates must not run as "
                        "root; start this as a normal user");
  }
  if (error.find("/proc") != std::string::npos) {
    return "a fresh /proc may not be mounted here, as in a container with a masked /proc";
  }
  if (error.find("nknown option") != std::string::npos) {
    return "bubblewrap is older than 0.8";
  }
  return "bubblewrap does not work here";
}

// OK if the bubblewrap program exists and the user that starts it can execute it.
absl::Status CheckBubblewrap(const char* advice) {
  const std::string program = BubblewrapPath();
  if (program.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("candidates cannot be confined: bwrap is not installed; install the package "
                     "bubblewrap",
                     advice));
  }
  if (access(program.c_str(), X_OK) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "candidates cannot be confined: ", program, " (from ", kBwrapVariable,
        ") cannot be executed; unset the variable or name a bubblewrap of at least 0.8", advice));
  }
  return CheckReadableByAll(program);
}

}  // namespace

absl::StatusOr<SandboxKind> ParseSandboxKind(const std::string& name) {
  if (name == "bubblewrap") return SandboxKind::kBubblewrap;
  if (name == "none") return SandboxKind::kNone;
  return absl::InvalidArgumentError(
      absl::StrCat("sandbox \"", name, "\" is unknown; use \"bubblewrap\" or \"none\""));
}

std::string BubblewrapPath() {
  if (const char* own = getenv(kBwrapVariable); own != nullptr && *own != '\0') return own;
  const char* path = getenv("PATH");
  for (const absl::string_view folder : absl::StrSplit(path != nullptr ? path : "", ':')) {
    // Relative folders do not count: the worker starts in another folder, and a candidate must not
    // be able to choose the program.
    if (folder.empty() || folder[0] != '/') continue;
    const std::string program = JoinPath(std::string(folder), "bwrap");
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

std::vector<std::string> SandboxCommand(const SandboxSpec& spec,
                                        const std::vector<std::string>& command) {
  std::vector<std::string> argv;
  if (!spec.cgroup_procs.empty()) {
    Append(&argv, {"/bin/sh", "-c", kJoinScript, "sh", absl::StrJoin(spec.cgroup_procs, " ")});
  }
  AppendDropUid(spec.kind, &argv);
  if (spec.kind == SandboxKind::kBubblewrap) {
    const std::string bwrap = BubblewrapPath();
    argv.push_back(bwrap.empty() ? "bwrap" : bwrap);
    AppendMounts(spec, &argv);
    AppendConfinement(&argv);
    for (const auto& [name, value] : spec.env) Append(&argv, {"--setenv", name, value});
    argv.push_back("--");
  } else {
    Append(&argv, {"/usr/bin/env", "-i"});
    for (const auto& [name, value] : spec.env) argv.push_back(absl::StrCat(name, "=", value));
  }
  argv.insert(argv.end(), command.begin(), command.end());
  return argv;
}

absl::Status CheckSandbox(SandboxKind kind) {
  if (geteuid() == 0 && !FileExists(kSetpriv)) {
    return absl::FailedPreconditionError(
        absl::StrCat(kSetpriv,
                     " is missing (Debian package util-linux); as root it is needed to "
                     "drop the user before a candidate runs"));
  }
  if (kind == SandboxKind::kNone) return absl::OkStatus();
  const char* advice =
      ", or ask for sandbox \"none\" where only trusted candidates run (no file, network or "
      "process isolation)";
  RETURN_IF_ERROR(CheckBubblewrap(advice));
  SandboxSpec spec;
  spec.env = {{"PATH", "/usr/bin"}};
  // The command in the sandbox does the zygote's work for a job: it makes pid and mount namespaces
  // and mounts a fresh /proc.
  absl::StatusOr<CommandResult> result =
      RunCommand(SandboxCommand(spec, {"/usr/bin/unshare", "--mount", "--pid", "--fork",
                                       "--mount-proc", "/usr/bin/true"}),
                 {.timeout = absl::Seconds(20)});
  RETURN_IF_ERROR(result.status());
  if (result->ok()) return absl::OkStatus();
  std::string error(absl::StripAsciiWhitespace(result->err));
  if (result->timed_out) error = "no answer in 20 s";
  return absl::FailedPreconditionError(
      absl::StrCat("candidates cannot be confined: ", Explain(error), " [", error, "]", advice));
}

absl::Status CheckReadableByAll(const std::string& path) {
  char resolved[4096];
  if (realpath(path.c_str(), resolved) == nullptr) return ErrnoStatus(errno, "find", path);
  if (geteuid() != 0) return absl::OkStatus();  // the worker is the same user
  const std::string full(resolved);
  for (size_t end = full.find('/', 1);; end = full.find('/', end + 1)) {
    const std::string part = full.substr(0, end);
    struct stat info;
    if (stat(part.c_str(), &info) != 0) return ErrnoStatus(errno, "look at", part);
    const mode_t needed = S_ISDIR(info.st_mode) ? S_IXOTH : S_IROTH;
    if ((info.st_mode & needed) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, " cannot be read by the unprivileged user that runs candidates: ", part,
          " is closed to others; move it or open it (chmod o+rx)"));
    }
    if (end == std::string::npos) return absl::OkStatus();
  }
}

}  // namespace tritonrl
