#include "base/run_command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "absl/time/clock.h"
#include "base/status.h"
#include "base/subprocess.h"

namespace tritonrl {
namespace {

// Appends available bytes to `text`, up to `limit` in total; returns false at the end of the
// stream.
bool Drain(int fd, size_t limit, std::string* text, bool* truncated) {
  char buffer[1 << 16];
  ssize_t n = read(fd, buffer, sizeof(buffer));
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (n == 0) return false;
  size_t room = limit > text->size() ? limit - text->size() : 0;
  text->append(buffer, std::min<size_t>(n, room));
  if (static_cast<size_t>(n) > room) *truncated = true;
  return true;
}

// Writes as many bytes as the pipe takes; returns false if all are written or the child no longer
// reads.
bool Feed(int fd, const std::string& input, size_t* written) {
  ssize_t n = write(fd, input.data() + *written, input.size() - *written);
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  *written += n;
  return *written < input.size();
}

// Blocks SIGPIPE in this thread; discards the SIGPIPE that a write to a closed pipe raised.
class PipeSignalGuard {
 public:
  PipeSignalGuard() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &old_);
  }
  ~PipeSignalGuard() {
    timespec zero = {0, 0};
    while (sigtimedwait(&pipe_, nullptr, &zero) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &old_, nullptr);
  }

 private:
  sigset_t pipe_, old_;
};

}  // namespace

absl::StatusOr<CommandResult> RunCommand(const std::vector<std::string>& argv,
                                         const RunCommandOptions& options) {
  SubprocessOptions start;
  start.argv = argv;
  start.env = options.env;
  start.clear_env = options.clear_env;
  start.cwd = options.cwd;
  start.in = options.input.empty() ? Stdio::Null() : Stdio::Pipe();
  start.out = Stdio::Pipe();
  start.err = Stdio::Pipe();
  ASSIGN_OR_RETURN(Subprocess process, Subprocess::Start(start));
  PipeSignalGuard guard;
  if (process.stdin_fd() >= 0) fcntl(process.stdin_fd(), F_SETFL, O_NONBLOCK);

  CommandResult result;
  const absl::Time deadline = absl::Now() + options.timeout;
  size_t written = 0;
  bool out_open = true, err_open = true;
  std::optional<ExitStatus> status;
  // A grandchild may keep the pipes open after the child has ended. 200 ms later the output read so
  // far is returned.
  absl::Time ended = absl::InfiniteFuture();
  while (out_open || err_open || !status.has_value()) {
    if (!status.has_value()) {
      status = process.Wait(absl::ZeroDuration());
      if (status.has_value()) ended = absl::Now();
    }
    absl::Time now = absl::Now();
    if (now >= deadline) {
      result.timed_out = !status.has_value();
      break;
    }
    if (now - ended > absl::Milliseconds(200)) break;
    pollfd fds[3] = {{out_open ? process.stdout_fd() : -1, POLLIN, 0},
                     {err_open ? process.stderr_fd() : -1, POLLIN, 0},
                     {process.stdin_fd(), POLLOUT, 0}};
    int64_t wait = std::clamp<int64_t>(absl::ToInt64Milliseconds(deadline - now), 1, 20);
    if (poll(fds, 3, static_cast<int>(wait)) <= 0) continue;
    if (fds[0].revents != 0) {
      out_open = Drain(process.stdout_fd(), options.max_output, &result.out, &result.truncated);
    }
    if (fds[1].revents != 0) {
      err_open = Drain(process.stderr_fd(), options.max_output, &result.err, &result.truncated);
    }
    if (fds[2].revents != 0 && !Feed(process.stdin_fd(), options.input, &written)) {
      process.CloseStdin();
    }
  }
  if (!status.has_value()) status = process.Kill();
  kill(-process.pid(), SIGKILL);  // remaining descendants in the child's process group
  result.exit_code = status->exit_code;
  result.signal = status->signal;
  return result;
}

}  // namespace tritonrl
