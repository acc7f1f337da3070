// Child processes. Each has its own process group, so that it can be killed with its descendants.
#ifndef TRITONRL_BASE_SUBPROCESS_H_
#define TRITONRL_BASE_SUBPROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tritonrl {

// The source of a child's stdin, or the destination of its stdout or stderr.
struct Stdio {
  enum class Kind { kInherit, kNull, kPipe, kFile, kDescriptor };
  Kind kind = Kind::kInherit;
  std::string path;     // kFile: stdin reads this file, stdout and stderr append to it
  int descriptor = -1;  // kDescriptor: duplicated in the child, stays open in the parent

  static Stdio Inherit() { return {}; }
  static Stdio Null() { return {Kind::kNull, "", -1}; }
  static Stdio Pipe() { return {Kind::kPipe, "", -1}; }
  static Stdio File(std::string path) { return {Kind::kFile, std::move(path), -1}; }
  static Stdio Descriptor(int fd) { return {Kind::kDescriptor, "", fd}; }
};

struct SubprocessOptions {
  std::vector<std::string> argv;  // argv[0] is looked up in PATH if it has no slash
  // Added to this process's environment, or with clear_env the child's whole environment.
  std::vector<std::pair<std::string, std::string>> env;
  bool clear_env = false;
  std::string cwd;  // working folder; empty: that of this process
  Stdio in = Stdio::Null();
  Stdio out = Stdio::Inherit();
  Stdio err = Stdio::Inherit();
  // Descriptors passed to the child: (number in this process, number in the child, at least 3). All
  // other descriptors above 2 are closed in the child.
  std::vector<std::pair<int, int>> pass_fds;
  // The signal that the child gets when the thread that started it ends; 0: none.
  int parent_death_signal = 0;
};

// How a child ended.
struct ExitStatus {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;      // 0 when it exited by itself
  bool ok() const { return exit_code == 0 && signal == 0; }
  bool operator==(const ExitStatus&) const = default;
  std::string ToString() const;  // "exit code 3", "signal 9 (Killed)"
};

// Owns a child process and the parent's ends of its pipes. Not thread-safe.
class Subprocess {
 public:
  // NotFound if the program does not exist; other errors name the failed step.
  static absl::StatusOr<Subprocess> Start(const SubprocessOptions& options);

  Subprocess(Subprocess&& other) noexcept;
  Subprocess& operator=(Subprocess&& other) noexcept;
  ~Subprocess();  // if the child still runs: kills its group and waits for it

  pid_t pid() const { return pid_; }
  // The parent's end of a kPipe stream, or -1. Owned by this object.
  int stdin_fd() const { return stdin_fd_; }
  int stdout_fd() const { return stdout_fd_; }
  int stderr_fd() const { return stderr_fd_; }
  void CloseStdin();

  // Waits until the child has ended; returns nullopt if the timeout passes first.
  std::optional<ExitStatus> Wait(absl::Duration timeout);
  // Sends a signal to the whole process group; has no effect after the exit status has been read.
  void Signal(int signal);
  // Sends SIGKILL to the group, then waits for the child.
  ExitStatus Kill();

 private:
  Subprocess() = default;
  void CloseAll();

  pid_t pid_ = -1;
  int stdin_fd_ = -1;
  int stdout_fd_ = -1;
  int stderr_fd_ = -1;
  std::optional<ExitStatus> status_;
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_SUBPROCESS_H_
