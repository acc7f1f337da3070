#include "exec/workers/worker_setup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "exec/sandbox/seccomp_policy.h"

namespace tritonrl {
namespace {

constexpr char kInside[] = "/opt/tritonrl";  // mount point of this program's folders in the sandbox

// Folders may be symbolic links (Bazel's runfiles are). Bubblewrap resolves a mount source itself,
// but CheckReadableByAll and the prefix tests below need the real path.
std::string Resolve(const std::string& path) {
  char resolved[4096];
  return realpath(path.c_str(), resolved) != nullptr ? resolved : path;
}

// Mounts the folders of an interpreter outside /usr (a virtual environment, pyenv).
absl::Status AddInterpreter(const PythonEnv& env, SandboxSpec* sandbox) {
  const std::string real = Resolve(env.interpreter);
  if (absl::StartsWith(real, "/usr/") && absl::StartsWith(env.interpreter, "/usr/")) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(
      CommandResult result,
      RunCommand({env.interpreter, "-c", "import sys; print(sys.prefix); print(sys.base_prefix)"}));
  if (!result.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the Python interpreter ", env.interpreter, " does not run: ", result.err));
  }
  std::vector<std::string> prefixes = absl::StrSplit(result.out, '\n', absl::SkipEmpty());
  std::sort(prefixes.begin(), prefixes.end());
  prefixes.erase(std::unique(prefixes.begin(), prefixes.end()), prefixes.end());
  for (const std::string& prefix : prefixes) {
    if (prefix == "/usr" || absl::StartsWith(prefix, "/usr/")) continue;
    if (absl::StartsWith(Resolve(prefix), "/tmp/") && sandbox->kind == SandboxKind::kBubblewrap) {
      return absl::InvalidArgumentError(
          absl::StrCat("the Python interpreter ", env.interpreter, " lies below ", prefix,
                       ", but candidates get a /tmp of their own; move it elsewhere"));
    }
    RETURN_IF_ERROR(CheckReadableByAll(prefix));
    sandbox->read_only.emplace_back(prefix, prefix);
  }
  return absl::OkStatus();
}

// Folders with the driver's user-space library (libcuda.so.1): from the linker's cache, from
// LD_LIBRARY_PATH, and two usual ones.
std::vector<std::string> DriverFolders() {
  std::vector<std::string> folders;
  auto cache = RunCommand({"/sbin/ldconfig", "-p"});
  if (cache.ok() && cache->ok()) {
    for (const absl::string_view line : absl::StrSplit(cache->out, '\n')) {
      const size_t arrow = line.find("=> ");
      if (line.find("libcuda.so.1 ") == absl::string_view::npos || arrow == line.npos) continue;
      folders.push_back(DirName(std::string(line.substr(arrow + 3))));
    }
  }
  const char* path = getenv("LD_LIBRARY_PATH");
  std::vector<std::string> more = absl::StrSplit(path != nullptr ? path : "", ':');
  more.insert(more.end(), {"/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu"});
  for (const std::string& folder : more) {
    if (!folder.empty() && FileExists(JoinPath(folder, "libcuda.so.1"))) folders.push_back(folder);
  }
  return folders;
}

void AddCuda(const std::string& gpu, SandboxSpec* sandbox,
             std::vector<std::string>* library_paths) {
  sandbox->devices = NvidiaDevices();
  // Loads each kernel at its first launch, which makes a context sooner.
  sandbox->env.emplace_back("CUDA_MODULE_LOADING", "LAZY");
  // Context creation is the slowest GPU operation of a job, and a GPU makes one context at a time.
  // Most of that time goes into hardware queues: an H200 makes 5.3 contexts a second with the
  // default eight queues, 9.6 with two. Two let a second stream run beside the first.
  sandbox->env.emplace_back("CUDA_DEVICE_MAX_CONNECTIONS", "2");
  // Slurm sets CUDA_VISIBLE_DEVICES to the GPUs of this process.
  const char* visible = gpu.empty() ? getenv("CUDA_VISIBLE_DEVICES") : gpu.c_str();
  if (visible != nullptr) sandbox->env.emplace_back("CUDA_VISIBLE_DEVICES", visible);
  std::vector<std::string> seen;
  for (const std::string& folder : DriverFolders()) {
    if (std::find(seen.begin(), seen.end(), folder) != seen.end()) continue;
    seen.push_back(folder);
    library_paths->push_back(folder);
    if (!absl::StartsWith(folder, "/usr/") && !absl::StartsWith(folder, "/lib")) {
      sandbox->read_only.emplace_back(folder, folder);
    }
  }
}

// Passes the zygote the seccomp filter, which it installs in each job.
absl::Status AddSeccompPolicy(const WorkerPoolOptions& options, WorkerConfig* config) {
  if (const absl::Status check = CheckSeccompPolicy(); !check.ok()) {
    if (options.sandbox == SandboxKind::kBubblewrap) return check;
    config->seccomp = false;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::string program,
                   BuildSeccompPolicy({.unix_sockets = options.device == "cuda"}));
  config->sandbox.env.emplace_back("TRITONRL_JOB_FILTER", absl::BytesToHexString(program));
  return absl::OkStatus();
}

// Not $TMPDIR or $TEST_TMPDIR: they can be below a folder that is closed to other users.
constexpr char kFolder[] = "/tmp";
constexpr char kPrefix[] = "tritonrl-exec-";
constexpr char kLockFile[] = "lock";
constexpr char kPackages[] = "packages";

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

// Removes copies whose lock is free: their owner died. A copy without a lock file is being made.
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
    const std::vector<std::string>& folders, const std::vector<std::string>& packages) {
  RemoveStale();
  std::string path = absl::StrCat(kFolder, "/", kPrefix, "XXXXXX");
  if (mkdtemp(path.data()) == nullptr) return ErrnoStatus(errno, "make a folder", path);
  chmod(path.c_str(), 0755);
  // The file is locked before it gets its final name, so that RemoveStale never finds it unlocked.
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
  RETURN_IF_ERROR(CreateDirectories(JoinPath(path, kPackages)));
  chmod(JoinPath(path, kPackages).c_str(), 0755);
  for (const std::string& package : packages) {
    const std::string name = package.substr(package.rfind('/') + 1);
    RETURN_IF_ERROR(CopyPythonFiles(package, JoinPath(path, absl::StrCat(kPackages, "/", name))));
  }
  return staged;
}

StagedSources::~StagedSources() {
  (void)RemoveTree(path_);
  if (lock_ >= 0) close(lock_);
}

absl::StatusOr<std::unique_ptr<StagedSources>> StagePythonSources(
    const WorkerPoolOptions& options) {
  std::vector<std::string> folders = {options.python_dir};
  if (options.python_dir.empty()) {
    ASSIGN_OR_RETURN(std::string worker, Runfile("exec/workers/python/worker.py"));
    folders[0] = DirName(worker);
  }
  folders.insert(folders.end(), options.extra_python_dirs.begin(), options.extra_python_dirs.end());
  return StagedSources::Create(folders, options.python_packages);
}

absl::StatusOr<WorkerConfig> MakeWorkerConfig(const WorkerPoolOptions& options,
                                              const std::string& staged_dir) {
  ASSIGN_OR_RETURN(PythonEnv env, FindPythonEnv());
  WorkerConfig config;
  config.runner = options.runner;
  config.start_timeout = options.start_timeout;
  config.kill_grace = options.kill_grace;
  config.sandbox.kind = options.sandbox;
  config.limit_data = options.device != "cuda";

  const bool confined = options.sandbox == SandboxKind::kBubblewrap;
  // Mounted at fixed paths: the real path can be below /tmp, which is a new tmpfs in the sandbox.
  auto show = [&](const std::string& path, const std::string& name) {
    const std::string inside = JoinPath(kInside, name);
    if (!confined) return path;
    config.sandbox.read_only.emplace_back(Resolve(path), inside);
    return inside;
  };
  const std::string python_root = show(staged_dir, "python");
  std::vector<std::string> python_path;
  for (size_t i = 0; i <= options.extra_python_dirs.size(); ++i) {
    python_path.push_back(JoinPath(python_root, absl::StrCat(i)));
  }
  python_path.push_back(JoinPath(python_root, kPackages));
  if (!env.site_packages.empty()) {
    RETURN_IF_ERROR(CheckReadableByAll(env.site_packages));
    env.site_packages = show(env.site_packages, "site");
  }
  for (size_t i = 0; i < env.library_paths.size(); ++i) {
    env.library_paths[i] = show(env.library_paths[i], absl::StrCat("lib", i));
  }
  RETURN_IF_ERROR(AddInterpreter(env, &config.sandbox));
  if (options.device == "cuda") {
    AddCuda(options.gpu, &config.sandbox, &env.library_paths);
  } else {
    config.sandbox.env.emplace_back("CUDA_VISIBLE_DEVICES", "");  // none, without bubblewrap too
  }

  for (const auto& entry : env.Environment(python_path)) config.sandbox.env.push_back(entry);
  const char* const more[][2] = {{"PATH", "/usr/bin:/bin"}, {"HOME", "/tmp"},
                                 {"USER", "nobody"},        {"LANG", "C.UTF-8"},
                                 {"OMP_NUM_THREADS", "1"},  {"MKL_NUM_THREADS", "1"},
                                 {"TMPDIR", "/tmp"},        {"OPENBLAS_NUM_THREADS", "1"}};
  for (const auto& [name, value] : more) config.sandbox.env.emplace_back(name, value);
  RETURN_IF_ERROR(AddSeccompPolicy(options, &config));
  // No -S: it would disable the interpreter's own site packages, which may contain torch.
  config.command = {env.interpreter, "-u", JoinPath(python_path[0], "worker.py")};
  return config;
}

std::vector<std::string> NvidiaDevices() {
  std::vector<std::string> devices;
  auto names = ListDirectory("/dev");
  if (!names.ok()) return devices;
  for (const std::string& name : *names) {
    const std::string path = JoinPath("/dev", name);
    struct stat info;
    if (absl::StartsWith(name, "nvidia") && stat(path.c_str(), &info) == 0 &&
        S_ISCHR(info.st_mode)) {
      devices.push_back(path);
    }
  }
  return devices;
}

}  // namespace tritonrl
