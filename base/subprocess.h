// Child processes, each in its own process group, so that it can be killed with its descendants.
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

// Where one of the child's standard streams goes.
struct Stdio {
  enum class Kind { kInherit, kNull, kPipe, kFile, kDescriptor };
  Kind kind = Kind::kInherit;
  std::string path;     // kFile: stdin reads it, stdout and stderr append to it
  int descriptor = -1;  // kDescriptor: duplicated in the child, stays open here

  static Stdio Inherit() { return {}; }
  static Stdio Null() { return {Kind::kNull, "", -1}; }
  static Stdio Pipe() { return {Kind::kPipe, "", -1}; }
  static Stdio File(std::string path) { return {Kind::kFile, std::move(path), -1}; }
  static Stdio Descriptor(int fd) { return {Kind::kDescriptor, "", fd}; }
};

struct SubprocessOptions {
  std::vector<std::string> argv;  // argv[0] is looked up in PATH when it has no slash
  // Set on top of this process's environment (clear_env: on top of nothing).
  std::vector<std::pair<std::string, std::string>> env;
  bool clear_env = false;
  std::string cwd;  // empty: this process's
  Stdio in = Stdio::Null();
  Stdio out = Stdio::Inherit();
  Stdio err = Stdio::Inherit();
  // Descriptors passed to the child: (number here, number in the child, at least 3). All others
  // above 2 are closed in the child.
  std::vector<std::pair<int, int>> pass_fds;
  // Signal that the child gets when the thread that started it ends; 0: none.
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

class Subprocess {
 public:
  // NotFound when the program does not exist; other errors name the step that failed.
  static absl::StatusOr<Subprocess> Start(const SubprocessOptions& options);

  Subprocess(Subprocess&& other) noexcept;
  Subprocess& operator=(Subprocess&& other) noexcept;
  ~Subprocess();  // kills the group and waits for the child if it still runs

  pid_t pid() const { return pid_; }
  // The parent's end of a kPipe stream, or -1. Owned by this object.
  int stdin_fd() const { return stdin_fd_; }
  int stdout_fd() const { return stdout_fd_; }
  int stderr_fd() const { return stderr_fd_; }
  void CloseStdin();

  // Waits until the child has ended; nothing when the timeout passed first.
  std::optional<ExitStatus> Wait(absl::Duration timeout);
  // Sends a signal to the whole process group; no effect after the child's exit status was read.
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
