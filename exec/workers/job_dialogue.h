// One job of a pool that is talked to while it runs.
#ifndef TRITONRL_EXEC_WORKERS_JOB_DIALOGUE_H_
#define TRITONRL_EXEC_WORKERS_JOB_DIALOGUE_H_

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/workers/control_channel.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

class JobDialogue {
 public:
  // Hands the job to the pool on a thread of its own. `fds` must stay open until this object is
  // gone; the control channel is added to them under the name "control". `ends`
  // are its ends but for Cancel, which is always one.
  static absl::StatusOr<std::unique_ptr<JobDialogue>> Start(WorkerPool* pool, std::string job_json,
                                                            const ExecLimits& limits,
                                                            absl::Time deadline,
                                                            std::vector<JobFd> fds,
                                                            JobEnds ends = {});
  ~JobDialogue();  // waits for the job's end, which its limits, the deadline or Cancel bound
  JobDialogue(const JobDialogue&) = delete;
  JobDialogue& operator=(const JobDialogue&) = delete;

  // The next message of the job, nothing once it has ended and none is left. The job's own wall
  // clock ends the wait.
  std::optional<std::string> Next();
  // As Next, until `deadline`, which it says whether it has `passed`. Descriptors that came with
  // the message are put into `fds`, and are the caller's to close; a job that could be hostile is
  // listened to without. Pass null for `fds` not to take any.
  std::optional<std::string> NextUntil(absl::Time deadline, std::vector<int>* fds, bool* passed);
  // A message to the job. One that is not read is lost; the job then ends at its limit.
  void Send(absl::string_view message) { (void)control_.Send(message); }

  // Has the job killed; its end is JobEnd::kDeadline.
  void Cancel();

  // Waits for the end and says how it came.
  JobReport Finish();

 private:
  JobDialogue(ControlChannel control, int ended_fd, int cancel_fd)
      : control_(std::move(control)), ended_fd_(ended_fd), cancel_fd_(cancel_fd) {}

  ControlChannel control_;
  const int ended_fd_;   // readable once the job has ended
  const int cancel_fd_;  // readable once it is to end
  JobReport report_;
  std::thread thread_;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_WORKERS_JOB_DIALOGUE_H_
