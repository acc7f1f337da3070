// Watchdog for calls that wait for other ranks and have no deadline of their own (CUDA, NCCL).
#ifndef TRITONRL_ROLLOUT_DISTRIBUTED_WATCHDOG_H_
#define TRITONRL_ROLLOUT_DISTRIBUTED_WATCHDOG_H_

#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace tritonrl {

// Ends the process with exit code 1 and a message on stderr when a call takes longer than `limit`.
class Watchdog {
 public:
  // `what`: the message's subject.
  Watchdog(std::string what, absl::Duration limit, Clock* clock = Clock::Real());
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Marks a call as in flight as long as this object lives; one call at a time.
  class Call {
   public:
    explicit Call(Watchdog* watch);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Watchdog* const watch_;
  };

 private:
  void Run();

  const std::string what_;
  const absl::Duration limit_;
  Clock* const clock_;
  absl::Mutex mutex_;
  absl::Time began_ ABSL_GUARDED_BY(mutex_) =
      absl::InfiniteFuture();  // start of the call in flight
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_DISTRIBUTED_WATCHDOG_H_
