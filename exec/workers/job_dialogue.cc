#include "exec/workers/job_dialogue.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "base/file.h"
#include "base/status.h"

namespace tritonrl {

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
