#include "exec/workers/job_dialogue.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "base/file.h"
#include "base/socket_stream.h"
#include "base/status.h"

namespace tritonrl {

absl::StatusOr<ControlChannel> ControlChannel::Create() {
  int sockets[2];
  // Sequenced packets keep message boundaries, so the channel needs no framing.
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
    return ErrnoStatus(errno, "make", "a socket pair for a job");
  }
  return ControlChannel(sockets[0], sockets[1]);
}

ControlChannel::ControlChannel(ControlChannel&& other) noexcept
    : own_end_(std::exchange(other.own_end_, -1)), job_end_(std::exchange(other.job_end_, -1)) {}

ControlChannel::~ControlChannel() {
  if (own_end_ >= 0) close(own_end_);
  if (job_end_ >= 0) close(job_end_);
}

// The job's end is open here too, so only shutdown() can close the connection. After it every read
// returns 0 at once, which must not count as an empty message.
bool ControlChannel::ShutDown() const {
  pollfd own = {own_end_, POLLRDHUP, 0};
  return poll(&own, 1, 0) > 0 && (own.revents & (POLLRDHUP | POLLHUP)) != 0;
}

ControlChannel::Event ControlChannel::Wait(int other_fd, absl::Time deadline, std::string* message,
                                           std::vector<int>* fds) {
  bool open = true;
  while (true) {
    message->resize(kMaxMessage);
    const ssize_t n =
        open ? ReceiveNow(own_end_, message->data(), message->size(), fds) : ssize_t{-1};
    if (n > 0 || (n == 0 && !ShutDown())) {
      message->resize(n);
      return Event::kMessage;
    }
    message->clear();
    open = open && n != 0;
    // poll ignores a negative descriptor.
    pollfd polls[2] = {{open ? own_end_ : -1, POLLIN, 0}, {other_fd, POLLIN, 0}};
    // kOther only after the last message: the job may have sent one just before its end.
    if (poll(&polls[1], 1, 0) > 0 && poll(&polls[0], 1, 0) == 0) return Event::kOther;
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return Event::kDeadline;
    const int64_t milliseconds = absl::ToInt64Milliseconds(std::min(left, absl::Seconds(10))) + 1;
    poll(polls, 2, static_cast<int>(milliseconds));
  }
}

absl::Status ControlChannel::Send(absl::string_view message) {
  while (send(own_end_, message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    return absl::UnavailableError("the job does not read its control channel");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<JobDialogue>> JobDialogue::Start(
    WorkerPool* pool, std::string job_json, const ExecLimits& limits, absl::Time deadline,
    std::vector<JobFd> fds, JobEnds ends) {
  ASSIGN_OR_RETURN(ControlChannel control, ControlChannel::Create());
  const int ended = eventfd(0, EFD_CLOEXEC);
  if (ended < 0) return ErrnoStatus(errno, "make", "an event descriptor for a job");
  const int cancel = eventfd(0, EFD_CLOEXEC);
  if (cancel < 0) {
    close(ended);
    return ErrnoStatus(errno, "make", "an event descriptor for a job");
  }
  fds.push_back({"control", control.job_end()});
  std::unique_ptr<JobDialogue> dialogue(new JobDialogue(std::move(control), ended, cancel));
  dialogue->thread_ = std::thread([d = dialogue.get(), pool, job = std::move(job_json), limits,
                                   deadline, fds = std::move(fds), ends]() mutable {
    ends.cancel_fd = d->cancel_fd_;
    d->report_ = pool->Run(job, limits, deadline, fds, ends);
    const uint64_t one = 1;
    (void)!write(d->ended_fd_, &one, sizeof(one));
  });
  return dialogue;
}

JobDialogue::~JobDialogue() {
  if (thread_.joinable()) thread_.join();
  close(ended_fd_);
  close(cancel_fd_);
}

std::optional<std::string> JobDialogue::Next() {
  bool passed = false;
  return NextUntil(absl::InfiniteFuture(), nullptr, &passed);
}

std::optional<std::string> JobDialogue::NextUntil(absl::Time deadline, std::vector<int>* fds,
                                                  bool* passed) {
  std::string message;
  const ControlChannel::Event event = control_.Wait(ended_fd_, deadline, &message, fds);
  *passed = event == ControlChannel::Event::kDeadline;
  if (event == ControlChannel::Event::kMessage) return message;
  return std::nullopt;
}

void JobDialogue::Cancel() {
  const uint64_t one = 1;
  (void)!write(cancel_fd_, &one, sizeof(one));
}

JobReport JobDialogue::Finish() {
  if (thread_.joinable()) thread_.join();
  return report_;
}

}  // namespace tritonrl
