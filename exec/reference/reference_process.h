// Reference processes: jobs that make a task's inputs and expected outputs, then serve orders about
// them, then take the next task. Formats: docs/protocol.md.
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

// Options of one order to a reference process, which serves one order at a time.
struct AskOptions {
  absl::Time deadline = absl::InfiniteFuture();              // of waiting and answer together
  absl::Duration answer_timeout = absl::InfiniteDuration();  // from sending the order
  std::vector<int>* fds = nullptr;  // receives the answer's descriptors; null: they are closed
  WaitedTime* queued = nullptr;     // counts the time until the process is free
};

// One process and its protocol. The process keeps inputs and expected outputs in its GPU memory,
// exchanges tensors with candidates through shared GPU buffers, compares outputs and times the
// reference. It outlives its task because a GPU makes only about five contexts a second.
class ReferenceProcess {
 public:
  // Starts no process yet: the first Make does, and occupies a worker of `pool` until this object
  // is destroyed.
  static absl::StatusOr<std::unique_ptr<ReferenceProcess>> Create(WorkerPool* pool);
  ~ReferenceProcess();  // ends the job
  ReferenceProcess(const ReferenceProcess&) = delete;
  ReferenceProcess& operator=(const ReferenceProcess&) = delete;

  // Runs a job of JobRole::kReference within its wall-clock limit and `deadline`. The first call
  // starts the process; a later call must follow a Drop. The report has the form of a separate job
  // that ended with this result. If the job failed, serving() is false afterwards.
  JobReport Make(const std::string& job_json, const ExecLimits& limits, absl::Time deadline);

  // Sends an order, waits for its answer, and returns the value of the answer's member `answer`.
  // Thread safe; the process serves one order at a time. ResourceExhausted: the GPU's memory does
  // not suffice for this order. Internal: the process reports another error, or its answer is
  // malformed. DeadlineExceeded: the process was busy until the deadline. Unavailable: the process
  // has ended, or has not answered in time (it gets at least five seconds) and was killed; every
  // later order fails at once.
  absl::StatusOr<nlohmann::json> Ask(const nlohmann::json& order, const char* answer,
                                     const AskOptions& options);

  // Makes the process free the task's memory. Returns whether it can take another task.
  bool Drop();

  // Whether the process is alive and has a task.
  bool serving() const { return serving_; }

 private:
  ReferenceProcess(WorkerPool* pool, SharedMemory job_buffer)
      : pool_(pool), job_buffer_(std::move(job_buffer)) {}

  // Starts the process with its first task.
  absl::Status Begin(const std::string& job_json, const ExecLimits& limits, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends the process another task.
  absl::Status Give(const std::string& job_json) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for the end of the process, after killing it if `kill`. Later orders fail with `why`.
  JobReport Lose(const std::string& why, bool kill) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads the message that ends a Make, which may tell of a failure, and the result in job_buffer_.
  // False if the message is malformed.
  bool ReadMade(const std::string& message, JobReport* report)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Sends one order and waits for its answer. The caller has set asking_.
  absl::StatusOr<nlohmann::json> AskNow(const nlohmann::json& order, const char* answer,
                                        const AskOptions& options) ABSL_LOCKS_EXCLUDED(mutex_);

  WorkerPool* const pool_;
  absl::Mutex turn_mutex_;
  bool asking_ ABSL_GUARDED_BY(turn_mutex_) = false;
  mutable absl::Mutex mutex_;
  SharedMemory job_buffer_ ABSL_GUARDED_BY(mutex_);  // carries jobs in and results out
  std::unique_ptr<JobDialogue> job_ ABSL_GUARDED_BY(mutex_);
  // Atomic and not guarded: serving() must not wait for an order, which can take long.
  std::atomic<bool> serving_{false};
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
  std::atomic<bool> counted_{true};  // whether the pool still counts the process
};

// All reference processes of a backend. Idle processes wait for the next task. Thread safe. A
// shared pointer must own it, because sessions share its ownership.
class ReferenceProcessPool : public std::enable_shared_from_this<ReferenceProcessPool> {
 public:
  // Each process, even an idle one, occupies a worker of `pool`. `max_wait`: see Make.
  explicit ReferenceProcessPool(WorkerPool* pool, absl::Duration max_wait = absl::Seconds(30))
      : pool_(pool), max_wait_(max_wait) {}

  // Runs the job in an idle process, else in a new one if that leaves a worker for candidates, else
  // waits at most `max_wait` for a process to become idle, then starts a new one anyway. (A wait
  // for a worker could last for ever, as idle processes keep theirs.) A job that fails in a process
  // with earlier tasks is retried in a new one. If the job fails, `session` is null and the report
  // gives the cause.
  JobReport Make(const std::string& job_json, const ExecLimits& limits, absl::Time deadline,
                 std::shared_ptr<ReferenceSession>* session);

  // Ends all idle processes, to free their GPU memory.
  void EndIdle();

 private:
  friend class ReferenceSession;
  // Returns an idle process, or null if the caller must start a new one, which already counts so
  // that concurrent callers do not start too many.
  std::unique_ptr<ReferenceProcess> Take(absl::Time deadline);
  void GiveBack(std::unique_ptr<ReferenceProcess> process);
  // Notes that a process has ended and its worker is free.
  void CountEnded();
  void End(std::unique_ptr<ReferenceProcess> process);

  WorkerPool* const pool_;
  const absl::Duration max_wait_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<ReferenceProcess>> idle_ ABSL_GUARDED_BY(mutex_);
  int processes_ ABSL_GUARDED_BY(mutex_) = 0;  // idle, starting, and those of sessions
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_REFERENCE_REFERENCE_PROCESS_H_
