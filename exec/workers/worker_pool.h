// Several warm workers behind one door: a job waits for a free worker, runs, and its report comes
// back; a worker that died is replaced.
#ifndef TRITONRL_EXEC_WORKERS_WORKER_POOL_H_
#define TRITONRL_EXEC_WORKERS_WORKER_POOL_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/thread_pool.h"
#include "exec/sandbox/sandbox.h"
#include "exec/workers/job.h"
#include "exec/workers/worker.h"

namespace tritonrl {

class StagedSources;

struct WorkerPoolOptions {
  int workers = 1;
  std::string device = "interpreter";  // "cuda" binds the GPU's device nodes
  // GPUs that jobs see, as CUDA_VISIBLE_DEVICES names them ("1", "GPU-..."); "": as this process's
  // own CUDA_VISIBLE_DEVICES says. Jobs use the first.
  std::string gpu;
  SandboxKind sandbox = SandboxKind::kBubblewrap;
  // Most that a job may use; a field left 0 takes DefaultLimits().
  ExecLimits limits;
  // Folder with worker.py and the runner's modules; "": the program's own exec/python.
  std::string python_dir;
  // Further folders of Python modules.
  std::vector<std::string> extra_python_dirs;
  std::string runner = "runner";
  // Cores that a worker and its job may use at once, where a cgroup can hold them to it, so that
  // one who forks or spins leaves the others theirs; 0: all.
  double cores = 4;
  // What a warm worker itself may hold, beside its job: torch, Triton and file cache.
  int64_t worker_bytes = int64_t{1} << 30;
  // Memory of finished jobs that stays charged to the workers because it is kept here.
  int64_t kept_bytes = 0;
  absl::Duration start_timeout = absl::Seconds(120);
  absl::Duration kill_grace = absl::Seconds(5);
};

struct WorkerPoolCounts {
  int64_t jobs = 0;  // reports handed out for jobs that began
  int64_t workers_started = 0;
  int64_t workers_lost = 0;  // died, or killed because they did not answer
};

class WorkerPool {
 public:
  // Starts all workers at once and returns when the first is ready. FailedPrecondition when
  // candidates cannot be confined as asked; else the error of the first worker when none starts.
  static absl::StatusOr<std::unique_ptr<WorkerPool>> Start(const WorkerPoolOptions& options);

  // Kills all workers. Jobs that run or wait end as kStopped.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Runs one job, a JSON object as text, which gets `fds` (see Worker::Run). Blocks, at most until
  // `deadline` plus kill_grace; any number of threads may call. Limits above the pool's are lowered
  // to them. A job whose worker died before it began is given to a fresh worker once. One that is
  // cancelled while it waits begins all the same, and ends then; for one that serves the deadline
  // bounds that wait alone.
  JobReport Run(const std::string& job_json, const ExecLimits& limits, absl::Time deadline,
                const std::vector<JobFd>& fds = {}, const JobEnds& ends = {});

  // Ends everything early, as the destructor does.
  void Stop();

  int workers() const { return static_cast<int>(threads_.size()); }
  // The most a job gets, all fields set.
  const ExecLimits& limits() const { return limits_; }
  WorkerPoolCounts counts() const;
  // "bubblewrap, seccomp, cgroup v1 memory+pids+cpu, rlimits".
  std::string sandbox_description() const;

 private:
  struct Pending;

  WorkerPool() = default;
  absl::Status Prepare(const WorkerPoolOptions& options);
  void Serve(int index);
  // Makes sure that there is a live worker.
  absl::Status EnsureWorker(int index, std::unique_ptr<Worker>* worker);
  JobReport RunOn(int index, std::unique_ptr<Worker>* worker, const Pending& job);

  WorkerPoolOptions options_;
  ExecLimits limits_;
  WorkerConfig config_;
  std::unique_ptr<StagedSources> sources_;
  int stop_fd_ = -1;
  std::atomic<bool> stopping_{false};
  std::unique_ptr<BoundedQueue<std::shared_ptr<Pending>>> queue_;
  std::vector<std::thread> threads_;

  mutable absl::Mutex mutex_;
  int ready_ ABSL_GUARDED_BY(mutex_) = 0;
  int failed_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status start_error_ ABSL_GUARDED_BY(mutex_);
  WorkerPoolCounts counts_ ABSL_GUARDED_BY(mutex_);
  std::string limits_description_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_WORKERS_WORKER_POOL_H_
