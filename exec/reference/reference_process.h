// Reference processes: jobs that stay alive after they have made a task's inputs and expected
// outputs, answer orders about them, and take the next task. Formats: docs/protocol.md.
#ifndef TRITONRL_EXEC_REFERENCE_REFERENCE_PROCESS_H_
#define TRITONRL_EXEC_REFERENCE_REFERENCE_PROCESS_H_

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
  absl::Time deadline = absl::InfiniteFuture();              // for its turn and the answer
  absl::Duration answer_timeout = absl::InfiniteDuration();  // for the answer, from its turn on
  std::vector<int>* fds = nullptr;  // takes descriptors that come along; null: none are taken
  WaitedTime* queued = nullptr;     // adds the time until its turn
};

// One process and its protocol. Inputs and expected outputs stay in its GPU memory; candidates
// exchange tensors with it through shared GPU buffers, and it compares outputs and times the
// reference. A process outlives its task because a GPU makes only about five contexts a second.
class ReferenceProcess {
 public:
  // Takes a worker of the pool until this object is gone; nothing is started yet.
  static absl::StatusOr<std::unique_ptr<ReferenceProcess>> Create(WorkerPool* pool);
  ~ReferenceProcess();  // ends the job
  ReferenceProcess(const ReferenceProcess&) = delete;
  ReferenceProcess& operator=(const ReferenceProcess&) = delete;

  // Runs a job of JobRole::kReference within its wall-clock limit and `deadline`: the first one
  // starts the process, a later one follows a Drop. The report has the form of a separate job that
  // ended with this result. serving() is false afterwards if the job failed.
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
  ReferenceProcess(WorkerPool* pool, SharedMemory job_buffer)
      : pool_(pool), job_buffer_(std::move(job_buffer)) {}

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
  SharedMemory job_buffer_ ABSL_GUARDED_BY(mutex_);  // jobs go in here, and results come back
  std::unique_ptr<JobDialogue> job_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> serving_{false};  // read while an order is served, which can take long
  std::string lost_ ABSL_GUARDED_BY(mutex_) = "the reference's process was not started";
};

class ReferenceProcessPool;

// One task's use of a process. The destructor frees the task's memory and returns the process to
// the pool.
class ReferenceSession {
 public:
  ReferenceSession(std::shared_ptr<ReferenceProcessPool> pool,
                   std::unique_ptr<ReferenceProcess> process)
      : pool_(std::move(pool)), process_(std::move(process)) {}
  ~ReferenceSession();
  ReferenceSession(const ReferenceSession&) = delete;
  ReferenceSession& operator=(const ReferenceSession&) = delete;

  // See ReferenceProcess.
  absl::StatusOr<nlohmann::json> Ask(const nlohmann::json& order, const char* answer,
                                     const AskOptions& options);
  // False after the process has ended.
  bool alive() const { return process_->serving(); }

 private:
  const std::shared_ptr<ReferenceProcessPool> pool_;
  std::unique_ptr<ReferenceProcess> process_;
  std::atomic<bool> counted_{true};  // among the pool's processes; not once it has ended
};

// All reference processes of a backend. Idle ones wait for the next task. Held by a shared pointer.
class ReferenceProcessPool : public std::enable_shared_from_this<ReferenceProcessPool> {
 public:
  // Each process takes a worker of `pool`, idle ones too. `max_wait`: see Make.
  explicit ReferenceProcessPool(WorkerPool* pool, absl::Duration max_wait = absl::Seconds(30))
      : pool_(pool), max_wait_(max_wait) {}

  // Runs the job in an idle process, else in a new one if that leaves one worker of the pool, else
  // waits at most `max_wait` for a process to become idle (a wait for a worker could last for ever,
  // as idle processes keep theirs). A job that fails in a process with earlier tasks is retried in
  // a new one. `session` is null when the job failed; the report gives the cause.
  JobReport Make(const std::string& job_json, const ExecLimits& limits, absl::Time deadline,
                 std::shared_ptr<ReferenceSession>* session);

  // Ends all idle processes, for their memory.
  void EndIdle();

 private:
  friend class ReferenceSession;
  // An idle one, or nothing where a new one is to be started.
  std::unique_ptr<ReferenceProcess> Take(absl::Time deadline);
  void GiveBack(std::unique_ptr<ReferenceProcess> process);
  // One has ended, and takes no worker any more.
  void CountEnded();
  // Ends it.
  void End(std::unique_ptr<ReferenceProcess> process);

  WorkerPool* const pool_;
  const absl::Duration max_wait_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<ReferenceProcess>> idle_ ABSL_GUARDED_BY(mutex_);
  int processes_ ABSL_GUARDED_BY(mutex_) = 0;  // idle ones, and those that reference processes have
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_REFERENCE_REFERENCE_PROCESS_H_
