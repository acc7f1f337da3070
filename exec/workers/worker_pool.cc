#include "exec/workers/worker_pool.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "exec/workers/worker_setup.h"

namespace tritonrl {
namespace {

constexpr size_t kQueueCapacity = 1 << 16;  // never full: each caller blocks in Run with one job
constexpr double kServingCpuSeconds = 1e6;
// Processes of a worker without its job: shell or bwrap twice, launcher, zygote...
constexpr int kWorkerProcesses = 6;

}  // namespace

struct WorkerPool::Pending {
  // Either a worker begins a job or its caller gives it up, never both.
  enum State { kWaiting, kBegun, kGivenUp };
  std::atomic<int> state{kWaiting};
  std::string job_json;
  ExecLimits limits;
  absl::Time deadline;
  std::vector<JobFd> fds;
  JobEnds ends;
  absl::Time queued = absl::Now();
  JobReport report;
  absl::Notification done;
};

absl::StatusOr<std::unique_ptr<WorkerPool>> WorkerPool::Start(const WorkerPoolOptions& options) {
  if (options.workers < 1 || options.workers > 1024) {
    return absl::InvalidArgumentError(
        absl::StrCat("the number of workers must be 1 to 1024, not ", options.workers));
  }
  RETURN_IF_ERROR(CheckSandbox(options.sandbox));
  std::unique_ptr<WorkerPool> pool(new WorkerPool());
  RETURN_IF_ERROR(pool->Prepare(options));
  for (int i = 0; i < options.workers; ++i) {
    pool->threads_.emplace_back([p = pool.get(), i] { p->Serve(i); });
  }
  WorkerPool* p = pool.get();
  auto decided = [p]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(p->mutex_) {
    return p->ready_ > 0 || p->failed_ == p->options_.workers;
  };
  absl::Status error;
  {
    absl::MutexLock lock(&pool->mutex_);
    pool->mutex_.Await(absl::Condition(&decided));
    if (pool->ready_ == 0) error = pool->start_error_;
  }
  RETURN_IF_ERROR(error);
  return pool;
}

absl::Status WorkerPool::Prepare(const WorkerPoolOptions& options) {
  options_ = options;
  limits_ = DefaultLimits();
  limits_.MergeFrom(options.limits);  // copies the fields that are set, even above the defaults
  queue_ = std::make_unique<BoundedQueue<std::shared_ptr<Pending>>>(kQueueCapacity);
  stop_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stop_fd_ < 0) return ErrnoStatus(errno, "make", "an event descriptor");
  ASSIGN_OR_RETURN(sources_, StagePythonSources(options));
  ASSIGN_OR_RETURN(config_, MakeWorkerConfig(options, sources_->path()));
  config_.cgroup = {
      .memory_bytes = limits_.memory_bytes() + options.worker_bytes + options.kept_bytes,
      .processes = limits_.processes() + kWorkerProcesses,
      .cores = options.cores};
  config_.stop_fd = stop_fd_;
  return absl::OkStatus();
}

WorkerPool::~WorkerPool() {
  Stop();
  for (std::thread& thread : threads_) thread.join();
  if (stop_fd_ >= 0) close(stop_fd_);
}

void WorkerPool::Stop() {
  stopping_ = true;
  const uint64_t one = 1;
  if (stop_fd_ >= 0) (void)!write(stop_fd_, &one, sizeof(one));
  if (queue_ != nullptr) queue_->Close();
}

absl::Status WorkerPool::EnsureWorker(int index, std::unique_ptr<Worker>* worker) {
  if (*worker != nullptr && (*worker)->alive()) return absl::OkStatus();
  const bool lost = *worker != nullptr;
  worker->reset();
  // The sources' id distinguishes the pools of one process.
  auto started = Worker::Start(config_, absl::StrCat(sources_->id(), "-w", index));
  absl::MutexLock lock(&mutex_);
  if (lost) ++counts_.workers_lost;
  if (!started.ok()) {
    ++failed_;
    start_error_ = started.status();
    return started.status();
  }
  *worker = *std::move(started);
  ++ready_;
  ++counts_.workers_started;
  limits_description_ = (*worker)->limits_description();
  return absl::OkStatus();
}

void WorkerPool::Serve(int index) {
  std::unique_ptr<Worker> worker;
  while (!stopping_) {
    // A dead worker is replaced before the next job comes, so that the job finds a warm one. An
    // error here is ignored: RunOn tries again and reports it.
    (void)EnsureWorker(index, &worker);
    std::optional<std::shared_ptr<Pending>> next = queue_->Pop();
    if (!next.has_value()) break;
    Pending& job = **next;
    int expected = Pending::kWaiting;
    if (!job.state.compare_exchange_strong(expected, Pending::kBegun)) continue;
    const absl::Duration waited = absl::Now() - job.queued;
    job.report = RunOn(index, &worker, job);
    job.report.queue_seconds = absl::ToDoubleSeconds(waited);
    {
      absl::MutexLock lock(&mutex_);
      ++counts_.jobs;
    }
    job.done.Notify();
  }
  // The pool has stopped: end the jobs left in the queue.
  while (auto next = queue_->PopFor(absl::ZeroDuration())) {
    int expected = Pending::kWaiting;
    if (!(*next)->state.compare_exchange_strong(expected, Pending::kBegun)) continue;
    (*next)->report.end = JobEnd::kStopped;
    (*next)->done.Notify();
  }
}

JobReport WorkerPool::RunOn(int index, std::unique_ptr<Worker>* worker, const Pending& job) {
  JobReport report;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (stopping_) {
      report.end = JobEnd::kStopped;
      return report;
    }
    if (absl::Status status = EnsureWorker(index, worker); !status.ok()) {
      report.detail = std::string(status.message());
      continue;
    }
    report = (*worker)->Run(job.job_json, job.limits, job.deadline, job.fds, job.ends);
    if (report.end != JobEnd::kNotStarted || (*worker)->alive()) break;
  }
  return report;
}

JobReport WorkerPool::Run(const std::string& job_json, const ExecLimits& limits,
                          absl::Time deadline, const std::vector<JobFd>& fds, const JobEnds& ends) {
  auto job = std::make_shared<Pending>();
  job->job_json = job_json;
  job->limits = EffectiveLimits(limits, limits_);
  job->deadline = ends.serves ? absl::InfiniteFuture() : deadline;
  job->fds = fds;
  job->ends = ends;
  // The kernel enforces the limit of CPU time, so it must be a finite number.
  if (ends.serves) job->limits.set_cpu_seconds(kServingCpuSeconds);
  std::shared_ptr<Pending> in_queue = job;
  JobReport none;
  if (!queue_->Push(std::move(in_queue))) {
    none.end = JobEnd::kStopped;
    return none;
  }
  if (!job->done.WaitForNotificationWithDeadline(deadline)) {
    int expected = Pending::kWaiting;
    if (job->state.compare_exchange_strong(expected, Pending::kGivenUp)) {
      none.end = JobEnd::kQueueTimeout;
      none.queue_seconds = absl::ToDoubleSeconds(absl::Now() - job->queued);
      return none;
    }
    job->done.WaitForNotification();  // bounded: the worker enforces the limits and the deadline
  }
  return std::move(job->report);
}

WorkerPoolCounts WorkerPool::counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

std::string WorkerPool::sandbox_description() const {
  absl::MutexLock lock(&mutex_);
  const bool none = options_.sandbox == SandboxKind::kNone;
  return absl::StrCat(none ? "NO sandbox" : "bubblewrap",
                      config_.seccomp ? ", seccomp, " : ", no seccomp, ",
                      limits_description_.empty() ? "no cgroup" : limits_description_, ", rlimits");
}

}  // namespace tritonrl
