#include "base/clock.h"

#include "absl/time/clock.h"

namespace tritonrl {
namespace {

class RealClock : public Clock {
 public:
  absl::Time Now() override { return absl::Now(); }
  bool AwaitWithDeadline(absl::Mutex* mutex, const absl::Condition& condition,
                         absl::Time deadline) override {
    return mutex->AwaitWithDeadline(condition, deadline);
  }
};

}  // namespace

Clock* Clock::Real() {
  static RealClock* const clock = new RealClock;
  return clock;
}

void Clock::SleepUntil(absl::Time time) {
  absl::Mutex mutex;
  bool never = false;
  absl::MutexLock lock(&mutex);
  AwaitWithDeadline(&mutex, absl::Condition(&never), time);
}

}  // namespace tritonrl
