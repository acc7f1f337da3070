// Messages of JSON text between the supervisor and a job of a worker pool while the job runs.
#ifndef TRITONRL_EXEC_WORKERS_JOB_DIALOGUE_H_
#define TRITONRL_EXEC_WORKERS_JOB_DIALOGUE_H_

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

// The two ends of the line. A process that may hold a candidate writes the messages, so the channel
// does not interpret them.
class ControlChannel {
 public:
  // Longest message in either direction; a longer one from the job arrives cut off.
  static constexpr size_t kMaxMessage = 128 << 10;

  static absl::StatusOr<ControlChannel> Create();
  ControlChannel(ControlChannel&& other) noexcept;
  ControlChannel& operator=(ControlChannel&&) = delete;
  ~ControlChannel();

  // The end that the job gets; stays open here too, so that another worker can be given it.
  int job_end() const { return job_end_; }

  enum class Event { kMessage, kOther, kDeadline };
  // Waits for a message. kOther: `other_fd` is readable and no message is left. Descriptors that
  // came along are put into `fds`, which owns them; with null the kernel drops them. A line that
  // the job has shut down brings no more messages.
  Event Wait(int other_fd, absl::Time deadline, std::string* message,
             std::vector<int>* fds = nullptr);

  // Never blocks; Unavailable when the job does not read what it was sent.
  absl::Status Send(absl::string_view message);

 private:
  bool ShutDown() const;
  ControlChannel(int own_end, int job_end) : own_end_(own_end), job_end_(job_end) {}

  int own_end_;
  int job_end_;
};

// One job of a pool with a control channel.
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
