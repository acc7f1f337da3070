// The process of a reference host: an oracle's job that goes on after it has made inputs and
// expected outputs, answers orders, and can be given one task after the other. Formats:
// exec/python/README.md.
#ifndef TRITONRL_EXEC_HOST_HOST_PROCESS_H_
#define TRITONRL_EXEC_HOST_HOST_PROCESS_H_

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "exec/messages.pb.h"
#include "exec/workers/job_dialogue.h"
#include "exec/workers/shared_memory.h"
#include "exec/workers/worker_pool.h"

namespace tritonrl {

struct AskOptions {
  absl::Time deadline = absl::InfiniteFuture();        // for its turn and the answer
  absl::Duration patience = absl::InfiniteDuration();  // for the answer, from its turn on
  std::vector<int>* fds = nullptr;  // takes descriptors that come along; null: none are taken
  WaitedTime* queued = nullptr;     // adds the time until its turn
};

class HostProcess {
 public:
  // Takes a worker of the pool until this object is gone; nothing is started yet.
  static absl::StatusOr<std::unique_ptr<HostProcess>> Create(WorkerPool* pool);
  ~HostProcess();  // ends the job
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;

  // Has a job of JobRole::kOracle made, by the wall-clock limit and `deadline`: the first one
  // starts the process, a later one follows a Drop. The report tells of it as if it had been a job
  // of its own that ended with what it made. Not serving() afterwards: it failed.
  JobReport Make(const std::string& job_json, const ExecLimits& limits, absl::Time deadline);

  // Sends an order and waits for its answer, an object with the one member `answer`, whose value
  // is given. Any number of threads may ask; orders are served one by one. ResourceExhausted: the
  // GPU's memory was not enough for this order. DeadlineExceeded: its turn had not come by then.
  // Unavailable: the process has ended, or did not answer in time (some seconds at least), in which
  // case it is killed; every later order fails at once.
  absl::StatusOr<nlohmann::json> Ask(const nlohmann::json& order, const char* answer,
                                     const AskOptions& options);

  // Gives the task's memory back. Whether the process is fit for another task.
  bool Drop();

  // A task is made, and the process has not ended since.
  bool serving() const { return serving_; }

 private:
  HostProcess(WorkerPool* pool, SharedMemory papers) : pool_(pool), papers_(std::move(papers)) {}

  // Starts the process with its first task.
  absl::Status Begin(const std::string& job_json, const ExecLimits& limits, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives it another one.
  absl::Status Give(const std::string& job_json) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Kills the process, if it has not ended, and says why there is none.
  JobReport Lose(const std::string& why, bool kill) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What a message tells of a result that was made (or that tells of a failure).
  bool ReadMade(const std::string& message, JobReport* report)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // One order and its answer; its turn has come.
  absl::StatusOr<nlohmann::json> AskNow(const nlohmann::json& order, const char* answer,
                                        const AskOptions& options) ABSL_LOCKS_EXCLUDED(mutex_);

  WorkerPool* const pool_;
  absl::Mutex turn_mutex_;
  bool asking_ ABSL_GUARDED_BY(turn_mutex_) = false;
  mutable absl::Mutex mutex_;
  SharedMemory papers_ ABSL_GUARDED_BY(mutex_);  // jobs go in here, and results come back
  std::unique_ptr<JobDialogue> job_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> serving_{false};  // read while an order is served, which can take long
  std::string lost_ ABSL_GUARDED_BY(mutex_) = "the reference's process was not started";
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_HOST_HOST_PROCESS_H_
