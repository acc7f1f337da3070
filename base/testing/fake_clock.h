// A clock that a test advances.
#ifndef TRITONRL_BASE_TESTING_FAKE_CLOCK_H_
#define TRITONRL_BASE_TESTING_FAKE_CLOCK_H_

#include <list>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace tritonrl {

// A clock whose time changes only in Advance. Thread-safe.
class FakeClock : public Clock {
 public:
  absl::Time Now() override {
    absl::MutexLock lock(&mutex_);
    return now_;
  }

  bool AwaitWithDeadline(absl::Mutex* mutex, const absl::Condition& condition,
                         absl::Time deadline) override {
    if (condition.Eval()) return true;
    const auto waiter = std::make_shared<Waiter>(mutex, &condition, deadline);
    {
      absl::MutexLock lock(&mutex_);
      if (deadline <= now_) return false;
      waiters_.push_back(waiter);
    }
    mutex->Await(absl::Condition(waiter.get(), &Waiter::Ready));
    bool woken;
    {
      absl::MutexLock lock(&mutex_);
      woken = waiter->woken;
      if (!woken) waiters_.remove(waiter);
    }
    // Advance will lock `mutex` for this waiter. The caller may destroy `mutex` after the return,
    // so this waits until Advance has locked it.
    if (woken) mutex->Await(absl::Condition(&waiter->passed));
    return condition.Eval();
  }

  // Advances the time and wakes all threads whose deadline is reached. The caller must not hold a
  // mutex that such a thread passed to AwaitWithDeadline.
  void Advance(absl::Duration duration) {
    std::vector<std::shared_ptr<Waiter>> due;
    {
      absl::MutexLock lock(&mutex_);
      now_ += duration;
      for (const auto& waiter : waiters_) {
        if (waiter->deadline <= now_) due.push_back(waiter);
      }
      for (const auto& waiter : due) {
        waiter->woken = true;
        waiters_.remove(waiter);
      }
    }
    for (const auto& waiter : due) {
      absl::MutexLock lock(waiter->mutex);
      waiter->passed = true;
    }
  }

  // Blocks until at least `count` threads wait for a deadline that is not reached yet.
  void AwaitWaiters(int count) {
    const auto enough = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return waiters_.size() >= count; };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&enough));
  }

 private:
  struct Waiter {
    Waiter(absl::Mutex* mutex, const absl::Condition* condition, absl::Time deadline)
        : mutex(mutex), condition(condition), deadline(deadline) {}
    bool Ready() const { return passed || condition->Eval(); }

    absl::Mutex* const mutex;
    const absl::Condition* const condition;
    const absl::Time deadline;
    bool passed = false;  // guarded by *mutex
    bool woken = false;   // guarded by mutex_
  };

  absl::Mutex mutex_;  // lock order: a waiter's mutex first, then this one
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::UnixEpoch() + absl::Hours(24 * 365 * 50);
  std::list<std::shared_ptr<Waiter>> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_TESTING_FAKE_CLOCK_H_
