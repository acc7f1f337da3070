#include "base/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"

extern char** environ;

namespace tritonrl {
namespace {

// The child sends this through the close-on-exec pipe when a step before exec fails.
struct ChildError {
  int step;  // index into kSteps
  int error;
};
constexpr const char* kSteps[] = {"open its input or output", "enter its working folder",
                                  "start the program"};

std::string FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = getenv("PATH");
  std::string folders = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  for (size_t begin = 0; begin <= folders.size();) {
    size_t end = std::min(folders.find(':', begin), folders.size());
    std::string candidate = JoinPath(folders.substr(begin, end - begin), name);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  return "";
}

std::vector<std::string> BuildEnvironment(const SubprocessOptions& options) {
  std::map<std::string, std::string> merged;
  if (!options.clear_env) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const char* equals = strchr(*entry, '=');
      if (equals != nullptr) merged[std::string(*entry, equals - *entry)] = equals + 1;
    }
  }
  for (const auto& [name, value] : options.env) merged[name] = value;
  std::vector<std::string> flat;
  for (const auto& [name, value] : merged) flat.push_back(absl::StrCat(name, "=", value));
  return flat;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

// The child's end of a standard stream, and the parent's end (or -1).
struct StreamEnds {
  int child = -1;
  int parent = -1;
};

absl::StatusOr<StreamEnds> OpenStream(const Stdio& stdio, bool input) {
  StreamEnds ends;
  switch (stdio.kind) {
    case Stdio::Kind::kInherit:
      break;
    case Stdio::Kind::kNull:
      ends.child = open("/dev/null", (input ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
      break;
    case Stdio::Kind::kFile:
      ends.child = input
                       ? open(stdio.path.c_str(), O_RDONLY | O_CLOEXEC)
                       : open(stdio.path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
      if (ends.child < 0) return ErrnoStatus(errno, "open", stdio.path);
      break;
    case Stdio::Kind::kDescriptor:
      ends.child = fcntl(stdio.descriptor, F_DUPFD_CLOEXEC, 3);
      break;
    case Stdio::Kind::kPipe: {
      int fds[2];
      if (pipe2(fds, O_CLOEXEC) != 0) return ErrnoStatus(errno, "make", "a pipe");
      ends.child = input ? fds[0] : fds[1];
      ends.parent = input ? fds[1] : fds[0];
      return ends;
    }
  }
  if (stdio.kind != Stdio::Kind::kInherit && ends.child < 0) {
    return ErrnoStatus(errno, "open", "a standard stream");
  }
  return ends;
}

void CloseFd(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

// All data that the child needs, prepared before fork: between fork and exec the child may only
// make system calls, because another thread may have held the allocator's lock at the fork.
struct ChildPlan {
  const char* program;
  char** argv;
  char** env;
  const char* cwd;
  int streams[3];
  const std::pair<int, int>* pass;
  int* moved;  // memory for pass_count descriptors
  size_t pass_count;
  int highest;  // first descriptor number above all targets
  int report_fd;
  int parent_death_signal;
  pid_t parent;
};

[[noreturn]] void ChildFail(const ChildPlan& plan, int report, int step) {
  ChildError error{step, errno};
  (void)!write(report, &error, sizeof(error));
  _exit(127);
  (void)plan;
}

[[noreturn]] void RunChild(const ChildPlan& plan) {
  setpgid(0, 0);
  if (plan.parent_death_signal != 0) {
    prctl(PR_SET_PDEATHSIG, plan.parent_death_signal);
    if (getppid() != plan.parent) _exit(127);  // the parent died before prctl took effect
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int s : {SIGPIPE, SIGINT, SIGTERM, SIGUSR1, SIGHUP}) signal(s, SIG_DFL);

  // Duplicates all sources to numbers above the targets first, so that no dup2 below overwrites a
  // source that is still needed.
  int report = fcntl(plan.report_fd, F_DUPFD_CLOEXEC, plan.highest);
  if (report < 0) ChildFail(plan, plan.report_fd, 0);
  for (size_t i = 0; i < plan.pass_count; ++i) {
    plan.moved[i] = fcntl(plan.pass[i].first, F_DUPFD_CLOEXEC, plan.highest);
    if (plan.moved[i] < 0) ChildFail(plan, report, 0);
  }
  for (int i = 0; i < 3; ++i) {
    if (plan.streams[i] >= 0 && dup2(plan.streams[i], i) < 0) ChildFail(plan, report, 0);
  }
  for (size_t i = 0; i < plan.pass_count; ++i) {
    if (dup2(plan.moved[i], plan.pass[i].second) < 0) ChildFail(plan, report, 0);
  }
  // Sets close-on-exec on all descriptors except the standard streams and the passed numbers; flag
  // 4 of close_range is CLOSE_RANGE_CLOEXEC.
  int begin = 3;
  while (begin < plan.highest) {
    bool passed = false;
    for (size_t i = 0; i < plan.pass_count; ++i) passed = passed || plan.pass[i].second == begin;
    if (!passed) fcntl(begin, F_SETFD, FD_CLOEXEC);
    ++begin;
  }
  syscall(SYS_close_range, static_cast<unsigned>(plan.highest), ~0u, 4u);
  if (plan.cwd[0] != '\0' && chdir(plan.cwd) != 0) ChildFail(plan, report, 1);
  execve(plan.program, plan.argv, plan.env);
  ChildFail(plan, report, 2);
}

// Opens stdin, stdout and stderr; stops at the first error.
absl::Status OpenStreams(const SubprocessOptions& options, StreamEnds* ends) {
  const Stdio* streams[3] = {&options.in, &options.out, &options.err};
  for (int i = 0; i < 3; ++i) {
    ASSIGN_OR_RETURN(ends[i], OpenStream(*streams[i], i == 0));
  }
  return absl::OkStatus();
}

// Returns the failed step before exec, or nullopt if a successful exec closed the pipe.
std::optional<ChildError> ReadReport(int fd) {
  ChildError error;
  ssize_t n;
  do {
    n = read(fd, &error, sizeof(error));
  } while (n < 0 && errno == EINTR);
  if (n != sizeof(error)) return std::nullopt;
  return error;
}

ExitStatus DecodeStatus(int status) {
  ExitStatus result;
  if (WIFEXITED(status)) {
    result.exit_code = WEXITSTATUS(status);
  } else {
    result.signal = WTERMSIG(status);
  }
  return result;
}

}  // namespace

std::string ExitStatus::ToString() const {
  if (signal != 0) return absl::StrCat("signal ", signal, " (", strsignal(signal), ")");
  return absl::StrCat("exit code ", exit_code);
}

absl::StatusOr<Subprocess> Subprocess::Start(const SubprocessOptions& options) {
  if (options.argv.empty()) return absl::InvalidArgumentError("no program to start");
  std::string program = FindProgram(options.argv[0]);
  if (program.empty()) {
    return absl::NotFoundError(absl::StrCat("program ", options.argv[0], " is not in PATH"));
  }
  std::vector<std::string> arguments = options.argv, environment = BuildEnvironment(options);
  std::vector<char*> argv = Pointers(arguments), env = Pointers(environment);

  Subprocess process;
  StreamEnds ends[3];
  auto cleanup = [&] {
    for (StreamEnds& e : ends) CloseFd(&e.child);
  };
  absl::Status opened = OpenStreams(options, ends);
  process.stdin_fd_ = ends[0].parent;
  process.stdout_fd_ = ends[1].parent;
  process.stderr_fd_ = ends[2].parent;
  if (!opened.ok()) {
    cleanup();
    return opened;
  }
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) {
    cleanup();
    return ErrnoStatus(errno, "make", "a pipe");
  }
  int highest = 10;
  for (const auto& [from, to] : options.pass_fds) highest = std::max(highest, to + 1);
  std::vector<int> moved(options.pass_fds.size());
  ChildPlan plan{program.c_str(),
                 argv.data(),
                 env.data(),
                 options.cwd.c_str(),
                 {ends[0].child, ends[1].child, ends[2].child},
                 options.pass_fds.data(),
                 moved.data(),
                 options.pass_fds.size(),
                 highest,
                 report[1],
                 options.parent_death_signal,
                 getpid()};
  pid_t pid = fork();
  if (pid == 0) RunChild(plan);
  int fork_error = errno;
  close(report[1]);
  cleanup();
  if (pid < 0) {
    close(report[0]);
    return ErrnoStatus(fork_error, "start", program);
  }
  setpgid(pid, pid);  // the child does the same, but the caller may signal the group before that
  process.pid_ = pid;
  const std::optional<ChildError> error = ReadReport(report[0]);
  close(report[0]);
  if (error.has_value()) {
    process.Kill();
    return ErrnoStatus(error->error, kSteps[error->step], error->step == 1 ? options.cwd : program);
  }
  return process;
}

Subprocess::Subprocess(Subprocess&& other) noexcept { *this = std::move(other); }

Subprocess& Subprocess::operator=(Subprocess&& other) noexcept {
  if (this == &other) return *this;
  if (pid_ > 0 && !status_.has_value()) Kill();
  CloseAll();
  pid_ = std::exchange(other.pid_, -1);
  stdin_fd_ = std::exchange(other.stdin_fd_, -1);
  stdout_fd_ = std::exchange(other.stdout_fd_, -1);
  stderr_fd_ = std::exchange(other.stderr_fd_, -1);
  status_ = std::exchange(other.status_, std::nullopt);
  return *this;
}

Subprocess::~Subprocess() {
  if (pid_ > 0 && !status_.has_value()) Kill();
  CloseAll();
}

void Subprocess::CloseAll() {
  CloseFd(&stdin_fd_);
  CloseFd(&stdout_fd_);
  CloseFd(&stderr_fd_);
}

void Subprocess::CloseStdin() { CloseFd(&stdin_fd_); }

std::optional<ExitStatus> Subprocess::Wait(absl::Duration timeout) {
  if (status_.has_value()) return status_;
  if (pid_ <= 0) return ExitStatus{};
  const absl::Time deadline = absl::Now() + timeout;
  absl::Duration pause = absl::Microseconds(200);
  while (true) {
    int status = 0;
    pid_t done = waitpid(pid_, &status, timeout == absl::InfiniteDuration() ? 0 : WNOHANG);
    if (done == pid_) {
      status_ = DecodeStatus(status);
      return status_;
    }
    if (done < 0 && errno != EINTR) {
      status_ = ExitStatus{};  // another wait call has already read its exit status
      return status_;
    }
    if (absl::Now() >= deadline) return std::nullopt;
    absl::SleepFor(std::min(pause, deadline - absl::Now()));
    pause = std::min(pause * 2, absl::Milliseconds(20));
  }
}

void Subprocess::Signal(int signal) {
  if (pid_ > 0 && !status_.has_value()) kill(-pid_, signal);
}

ExitStatus Subprocess::Kill() {
  Signal(SIGKILL);
  return *Wait(absl::InfiniteDuration());
}

}  // namespace tritonrl
