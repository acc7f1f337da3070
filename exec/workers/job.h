// A job of a worker pool: its limits, its inputs, and the report of how its process ended.
#ifndef TRITONRL_EXEC_WORKERS_JOB_H_
#define TRITONRL_EXEC_WORKERS_JOB_H_

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "exec/messages.pb.h"

namespace tritonrl {

enum class JobEnd {
  kExit,          // the process ended by itself; see exit_code and signal
  kTimeout,       // killed at the wall-clock limit
  kDeadline,      // killed at the caller's deadline, before the limit, or cancelled
  kOutputLimit,   // killed for printing too much
  kChannelLimit,  // killed for writing too much into the result channel
  kProcessLimit,  // killed for having too many processes
  kWorkerDied,    // the worker ended while the job ran
  kNotStarted,    // no worker could be started, or it died before the job began
  kQueueTimeout,  // the deadline passed while the job waited for a worker
  kStopped,       // the pool was stopped
};

// Time that a job spent waiting for other jobs. It does not count against the job's wall-clock
// limit. Thread safe: waits of several threads that overlap count once.
class WaitedTime {
 public:
  explicit WaitedTime(Clock* clock = Clock::Real()) : clock_(clock) {}

  // Each Begin needs one End.
  void Begin();
  void End();
  // The time waited so far, open waits included.
  absl::Duration Total() const;

  // Counts its own lifetime as waiting; with a null `time` it counts nothing.
  class Span {
   public:
    explicit Span(WaitedTime* time) : time_(time) {
      if (time_ != nullptr) time_->Begin();
    }
    ~Span() {
      if (time_ != nullptr) time_->End();
    }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    WaitedTime* const time_;
  };

 private:
  Clock* const clock_;
  mutable absl::Mutex mutex_;
  int waits_ ABSL_GUARDED_BY(mutex_) = 0;     // open waits
  absl::Time since_ ABSL_GUARDED_BY(mutex_);  // begin of the first open wait
  absl::Duration ended_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();  // all closed waits
};

// Conditions that end a job or extend its time limit.
struct JobEnds {
  // When this descriptor becomes readable, the job is killed with the end kDeadline. -1: none.
  int cancel_fd = -1;
  // The job serves orders until it is cancelled or its control channel closes; it has no time
  // limit.
  bool serves = false;
  // Extends the wall-clock limit; must outlive the job. Null: no extension.
  const WaitedTime* waited = nullptr;
};

// A descriptor that a job receives under a name. The supervisor's copy stays open.
struct JobFd {
  std::string name;
  int fd = -1;
};

struct JobReport {
  JobEnd end = JobEnd::kNotStarted;
  int exit_code = -1;
  int signal = 0;
  bool out_of_memory = false;  // the kernel killed a process of the job for memory
  bool refused_forks = false;  // the kernel refused a fork of the job
  std::string channel;         // bytes of the result channel, unchecked
  std::string output;          // beginning and end of stdout and stderr
  int64_t output_bytes = 0;    // size of the whole output
  double wall_seconds = 0;     // from sending the job to the worker until its report
  double queue_seconds = 0;    // waiting for a worker
  double cpu_seconds = 0;
  int64_t peak_rss_bytes = 0;
  std::string detail;  // cause of an infrastructure error
};

// The limits of a job if neither pool nor request sets others.
ExecLimits DefaultLimits();

// For each field the smaller limit of `request` and `pool`; an unset field (0) is no limit.
ExecLimits EffectiveLimits(const ExecLimits& request, const ExecLimits& pool);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_WORKERS_JOB_H_
