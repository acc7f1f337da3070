// Messages between the supervisor and a running job of a worker pool.
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

// A socket pair that carries messages. The sender may be a candidate's process, so the channel does
// not interpret the messages. Owns both ends.
class ControlChannel {
 public:
  // Size limit of a message from the job in bytes; a longer one is truncated.
  static constexpr size_t kMaxMessage = 128 << 10;

  static absl::StatusOr<ControlChannel> Create();
  ControlChannel(ControlChannel&& other) noexcept;
  ControlChannel& operator=(ControlChannel&&) = delete;
  ~ControlChannel();

  // The job's end. It stays open here too, so that a second worker can receive it if the first one
  // dies.
  int job_end() const { return job_end_; }

  enum class Event { kMessage, kOther, kDeadline };
  // Waits for a message. kOther: `other_fd` is readable and no message is left. Descriptors sent
  // with the message are appended to `fds`, and the caller closes them; if `fds` is null, the
  // kernel drops them. After the job has shut its end down, no more messages arrive.
  Event Wait(int other_fd, absl::Time deadline, std::string* message,
             std::vector<int>* fds = nullptr);

  // Never blocks. Unavailable if the channel is full because the job does not read.
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
  // Runs the job in the pool, on a new thread. `fds` must stay open until this object is destroyed;
  // the job also receives the control channel, under the name "control". Cancel replaces
  // `ends.cancel_fd`.
  static absl::StatusOr<std::unique_ptr<JobDialogue>> Start(WorkerPool* pool, std::string job_json,
                                                            const ExecLimits& limits,
                                                            absl::Time deadline,
                                                            std::vector<JobFd> fds,
                                                            JobEnds ends = {});
  ~JobDialogue();  // waits until the job ends by itself, its limits, the deadline or Cancel
  JobDialogue(const JobDialogue&) = delete;
  JobDialogue& operator=(const JobDialogue&) = delete;

  // Waits for the next message of the job. Returns nullopt once the job has ended and no message is
  // left; the wait is bounded by the job's wall-clock limit.
  std::optional<std::string> Next();
  // As Next, but at most until `deadline`; sets `passed` to whether the deadline ended the wait.
  // Descriptors sent with the message are appended to `fds`, and the caller closes them. Pass null
  // for a job that could be hostile: its descriptors are then dropped.
  std::optional<std::string> NextUntil(absl::Time deadline, std::vector<int>* fds, bool* passed);
  // Sends a message to the job. The message is lost if the channel is full; the job then ends at
  // its limit.
  void Send(absl::string_view message) { (void)control_.Send(message); }

  // Makes the pool kill the job, whose end is then JobEnd::kDeadline.
  void Cancel();

  // Waits for the end of the job and returns its report.
  JobReport Finish();

 private:
  JobDialogue(ControlChannel control, int ended_fd, int cancel_fd)
      : control_(std::move(control)), ended_fd_(ended_fd), cancel_fd_(cancel_fd) {}

  ControlChannel control_;
  const int ended_fd_;   // readable after the job has ended
  const int cancel_fd_;  // readable after Cancel
  JobReport report_;
  std::thread thread_;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_WORKERS_JOB_DIALOGUE_H_
