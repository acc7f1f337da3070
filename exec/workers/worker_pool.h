// A pool of warm workers. Each job waits for a free worker and runs there; the pool replaces dead
// workers.
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
  std::string device = "cpu";  // "cuda" binds the GPU's device nodes
  // CUDA_VISIBLE_DEVICES of jobs ("1", "GPU-..."); "": that of this process. Jobs use the first
  // GPU.
  std::string gpu;
  SandboxKind sandbox = SandboxKind::kBubblewrap;
  // Upper limits of a job; an unset field (0) takes its value from DefaultLimits().
  ExecLimits limits;
  // Folder with worker.py; "": exec/workers/python from the program's runfiles.
  std::string python_dir;
  // Further folders of Python modules, such as the runner's.
  std::vector<std::string> extra_python_dirs;
  // Folders of Python packages, each imported by its folder's name.
  std::vector<std::string> python_packages;
  std::string runner;  // Python module with run_job; must be set
  // Cores that a worker and its job may use at once, if a cgroup can enforce it, so that a job that
  // forks or spins cannot starve other workers; 0: no limit.
  double cores = 4;
  // Memory of a warm worker without its job: torch, Triton and file cache.
  int64_t worker_bytes = int64_t{1} << 30;
  // Memory of finished jobs that this process keeps and the kernel still charges to the worker's
  // cgroup.
  int64_t kept_bytes = 0;
  absl::Duration start_timeout = absl::Seconds(120);
  absl::Duration kill_grace = absl::Seconds(5);
};

struct WorkerPoolCounts {
  int64_t jobs = 0;  // finished jobs that a worker thread had taken from the queue
  int64_t workers_started = 0;
  int64_t workers_lost = 0;  // workers that died, or were killed because they did not answer
};

// Thread safe.
class WorkerPool {
 public:
  // Starts all workers in parallel and returns when the first is ready. InvalidArgument if the
  // number of workers is not 1 to 1024; FailedPrecondition if this host cannot confine candidates
  // by options.sandbox; if no worker starts, the error of one of them.
  static absl::StatusOr<std::unique_ptr<WorkerPool>> Start(const WorkerPoolOptions& options);

  // Kills all workers. Running and waiting jobs end as kStopped.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Runs one job, a JSON object as text, with the descriptors `fds` (see Worker::Run). Blocks until
  // the job ends, at most until `deadline` plus kill_grace. Limits above the pool's are lowered to
  // the pool's. If the worker dies before the job begins, a new worker gets the job, once; its
  // start may exceed that bound. A job that is cancelled while it waits still begins, and then ends
  // at once. For a job that serves (ends.serves), `deadline` bounds only the wait for a worker.
  JobReport Run(const std::string& job_json, const ExecLimits& limits, absl::Time deadline,
                const std::vector<JobFd>& fds = {}, const JobEnds& ends = {});

  // Kills all workers, as the destructor does.
  void Stop();

  int workers() const { return static_cast<int>(threads_.size()); }
  // Upper limits of a job, with all fields set.
  const ExecLimits& limits() const { return limits_; }
  WorkerPoolCounts counts() const;
  // For example "bubblewrap, seccomp, cgroup v1 memory+pids+cpu, rlimits".
  std::string sandbox_description() const;

 private:
  struct Pending;

  WorkerPool() = default;
  absl::Status Prepare(const WorkerPoolOptions& options);
  void Serve(int index);
  // Starts a worker unless `worker` holds a live one.
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
