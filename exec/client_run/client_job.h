// A candidate's process as a job of a worker pool, with the way to it.
#ifndef TRITONRL_EXEC_CLIENT_RUN_CLIENT_JOB_H_
#define TRITONRL_EXEC_CLIENT_RUN_CLIENT_JOB_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "exec/workers/job_dialogue.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

// The module of the process (exec/client/job.py), and the options of a pool that runs it: those of
// `options` with its code. NotFound: the program's runfiles lack it.
absl::StatusOr<WorkerPoolOptions> ClientPoolOptions(WorkerPoolOptions options);

class ClientJob {
 public:
  // Starts the process in the pool; `name` is for messages. By the words of the candidate's
  // `source` the worker knows what to import ahead. The socket is at its end once the process has
  // ended.
  static absl::StatusOr<std::unique_ptr<ClientJob>> Start(WorkerPool* pool, const std::string& name,
                                                          absl::string_view source,
                                                          const ExecLimits& limits,
                                                          absl::Time deadline);
  ~ClientJob();
  ClientJob(const ClientJob&) = delete;
  ClientJob& operator=(const ClientJob&) = delete;

  // The way to it, a stream socket, which stays this object's.
  int socket() const { return ours_; }
  // Has the pool kill the process.
  void Cancel() { job_->Cancel(); }
  // Whether the process ends within this time.
  bool WaitForEnd(absl::Duration time) { return ended_.WaitForNotificationWithTimeout(time); }
  // Shuts the socket down, waits until the process has ended by itself, its limits or Cancel, and
  // returns how.
  JobReport Finish();

 private:
  ClientJob(int ours, int theirs) : ours_(ours), theirs_(theirs) {}

  const int ours_, theirs_;  // ends of the socket; the pool needs theirs as long as the job runs
  std::unique_ptr<JobDialogue> job_;
  absl::Notification ended_;
  std::thread watcher_;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CLIENT_RUN_CLIENT_JOB_H_
