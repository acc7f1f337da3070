#include "exec/job_dialogue.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "base/file.h"
#include "base/status.h"

namespace tritonrl {

absl::StatusOr<std::unique_ptr<JobDialogue>> JobDialogue::Start(WorkerPool* pool,
                                                                std::string job_json,
                                                                const ExecLimits& limits,
                                                                absl::Time deadline,
                                                                std::vector<JobFd> fds) {
  ASSIGN_OR_RETURN(ControlChannel control, ControlChannel::Create());
  const int ended = eventfd(0, EFD_CLOEXEC);
  if (ended < 0) return ErrnoStatus(errno, "make", "an event descriptor for a job");
  fds.push_back({"control", control.job_end()});
  std::unique_ptr<JobDialogue> dialogue(new JobDialogue(std::move(control), ended));
  dialogue->thread_ = std::thread([d = dialogue.get(), pool, job = std::move(job_json), limits,
                                   deadline, fds = std::move(fds)] {
    d->report_ = pool->Run(job, limits, deadline, fds);
    const uint64_t one = 1;
    (void)!write(d->ended_fd_, &one, sizeof(one));
  });
  return dialogue;
}

JobDialogue::~JobDialogue() {
  if (thread_.joinable()) thread_.join();
  close(ended_fd_);
}

std::optional<std::string> JobDialogue::Next() {
  std::string message;
  if (control_.Wait(ended_fd_, absl::InfiniteFuture(), &message) ==
      ControlChannel::Event::kMessage) {
    return message;
  }
  return std::nullopt;
}

JobReport JobDialogue::Finish() {
  if (thread_.joinable()) thread_.join();
  return report_;
}

}  // namespace tritonrl
