// A candidate's process as a job of a worker pool, with the way to it.
#ifndef TRITONRL_EXEC_CLIENT_RUN_CLIENT_JOB_H_
#define TRITONRL_EXEC_CLIENT_RUN_CLIENT_JOB_H_

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/device/frame.h"
#include "exec/workers/job_dialogue.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

// The module of the process (exec/client/job.py), and the options of a pool that runs it: those of
// `options` with its code. NotFound: the program's runfiles lack it.
absl::StatusOr<WorkerPoolOptions> ClientPoolOptions(WorkerPoolOptions options);

class ClientJob {
 public:
  // Starts the process in the pool; `name` is for messages. The channel fails with Unavailable once
  // the process has ended.
  static absl::StatusOr<std::unique_ptr<ClientJob>> Start(WorkerPool* pool, const std::string& name,
                                                          const ExecLimits& limits,
                                                          absl::Time deadline);
  ~ClientJob();
  ClientJob(const ClientJob&) = delete;
  ClientJob& operator=(const ClientJob&) = delete;

  device::Channel& channel() { return *channel_; }
  // Has the pool kill the process.
  void Cancel() { job_->Cancel(); }
  // Closes the channel, waits until the process has ended by itself, its limits or Cancel, and
  // returns how.
  JobReport Finish();

 private:
  ClientJob(int ours, int theirs) : ours_(ours), theirs_(theirs) {}

  const int ours_, theirs_;  // ends of the socket; the pool needs theirs as long as the job runs
  std::optional<device::SocketChannel> channel_;
  std::unique_ptr<JobDialogue> job_;
  std::thread watcher_;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CLIENT_RUN_CLIENT_JOB_H_
