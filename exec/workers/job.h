// One job as the pool sees it: bytes in, and a report of how its process ended.
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
  kExit,          // the process ended by itself: exit_code or signal
  kTimeout,       // killed at the wall-clock limit
  kDeadline,      // killed because the caller's deadline came before the limit
  kOutputLimit,   // killed for printing too much
  kChannelLimit,  // killed for writing too much into the result channel
  kProcessLimit,  // killed for having too many processes
  kWorkerDied,    // the worker ended while the job ran
  kNotStarted,    // no worker could be started, or it died before the job began
  kQueueTimeout,  // the deadline passed while the job waited for a worker
  kStopped,       // the pool was stopped
};

// Time for which a job had to wait for others, by no doing of its own: it does not count against
// its limit of wall-clock time. For any number of threads, each of which ends what it began.
class WaitedTime {
 public:
  explicit WaitedTime(Clock* clock = Clock::Real()) : clock_(clock) {}

  void Begin();
  void End();
  // Until now.
  absl::Duration Total() const;

  // Waits as long as it lives; null: nothing is counted.
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
  int waits_ ABSL_GUARDED_BY(mutex_) = 0;  // that go on; together they are one
  absl::Time since_ ABSL_GUARDED_BY(mutex_);
  absl::Duration ended_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();
};

// What may end a job beside its limits.
struct JobEnds {
  // Readable: the job is killed, and its end is kDeadline. -1: nothing but limits ends it.
  int cancel_fd = -1;
  // It serves until it is cancelled or its control channel closes: no limit of time counts.
  bool serves = false;
  // What its wall-clock limit is extended by; stays where it is until the job has ended.
  const WaitedTime* waited = nullptr;
};

// A descriptor handed to a job under a name; stays open here.
struct JobFd {
  std::string name;
  int fd = -1;
};

struct JobReport {
  JobEnd end = JobEnd::kNotStarted;
  int exit_code = -1;
  int signal = 0;
  bool out_of_memory = false;  // the kernel killed a process of the job for memory
  bool refused_forks = false;  // the kernel refused it more processes
  std::string channel;         // what came through the result channel, not looked at
  std::string output;          // beginning and end of stdout and stderr
  int64_t output_bytes = 0;
  double wall_seconds = 0;  // from handing the job over to its report
  double queue_seconds = 0;
  double cpu_seconds = 0;
  int64_t peak_rss_bytes = 0;
  std::string detail;  // for infrastructure errors: what went wrong
};

// The limits a job runs under when neither pool nor request says otherwise.
ExecLimits DefaultLimits();

// Each field of `request` that is set and smaller, else the one of `pool`.
ExecLimits EffectiveLimits(const ExecLimits& request, const ExecLimits& pool);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_WORKERS_JOB_H_
