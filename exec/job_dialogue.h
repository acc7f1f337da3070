// One job of a pool that is talked to while it runs.
#ifndef TRITONRL_EXEC_JOB_DIALOGUE_H_
#define TRITONRL_EXEC_JOB_DIALOGUE_H_

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/control_channel.h"
#include "exec/worker_pool.h"

namespace tritonrl {

class JobDialogue {
 public:
  // Hands the job to the pool on a thread of its own. `fds` must stay open until this object is
  // gone; the control channel is added to them under the name "control".
  static absl::StatusOr<std::unique_ptr<JobDialogue>> Start(WorkerPool* pool, std::string job_json,
                                                            const ExecLimits& limits,
                                                            absl::Time deadline,
                                                            std::vector<JobFd> fds);
  ~JobDialogue();  // waits for the job's end, which its limits and the deadline bound
  JobDialogue(const JobDialogue&) = delete;
  JobDialogue& operator=(const JobDialogue&) = delete;

  // The next message of the job, nothing once it has ended and none is left. The job's own wall
  // clock ends the wait.
  std::optional<std::string> Next();
  // A message to the job. One that is not read is lost; the job then ends at its limit.
  void Send(absl::string_view message) { (void)control_.Send(message); }

  // Waits for the end and says how it came.
  JobReport Finish();

 private:
  JobDialogue(ControlChannel control, int ended_fd)
      : control_(std::move(control)), ended_fd_(ended_fd) {}

  ControlChannel control_;
  const int ended_fd_;  // readable once the job has ended
  JobReport report_;
  std::thread thread_;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_JOB_DIALOGUE_H_
