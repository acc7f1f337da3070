// A clock interface, so that tests of deadlines can replace the real time.
#ifndef TRITONRL_BASE_CLOCK_H_
#define TRITONRL_BASE_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tritonrl {

// Reads the time and waits for it. Thread-safe. Tests pass a FakeClock
// (base/testing/fake_clock.h).
class Clock {
 public:
  virtual ~Clock() = default;
  // The system clock; never destroyed.
  static Clock* Real();

  virtual absl::Time Now() = 0;
  // absl::Mutex::AwaitWithDeadline with this clock's time: releases `mutex`, which the caller
  // holds, until `condition` is true or `deadline` has passed. Returns the value of `condition`.
  virtual bool AwaitWithDeadline(absl::Mutex* mutex, const absl::Condition& condition,
                                 absl::Time deadline) ABSL_SHARED_LOCKS_REQUIRED(mutex) = 0;
  void SleepUntil(absl::Time time);
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_CLOCK_H_
