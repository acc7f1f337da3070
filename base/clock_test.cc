#include "base/clock.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/testing/fake_clock.h"

namespace tritonrl {
namespace {

TEST(RealClock, WaitsForADeadlineOrACondition) {
  Clock* const clock = Clock::Real();
  const absl::Time until = clock->Now() + absl::Milliseconds(2);
  clock->SleepUntil(until);
  EXPECT_GE(clock->Now(), until);
  absl::Mutex mutex;
  absl::MutexLock lock(&mutex);
  bool no = false, yes = true;
  EXPECT_FALSE(clock->AwaitWithDeadline(&mutex, absl::Condition(&no), clock->Now()));
  EXPECT_TRUE(clock->AwaitWithDeadline(&mutex, absl::Condition(&yes), absl::InfiniteFuture()));
}

TEST(FakeClock, MovesOnlyByAdvance) {
  FakeClock clock;
  const absl::Time start = clock.Now();
  clock.Advance(absl::Seconds(3));
  EXPECT_EQ(clock.Now(), start + absl::Seconds(3));
  clock.SleepUntil(clock.Now());
}

TEST(FakeClock, AdvanceWakesThoseWhoseDeadlineIsReached) {
  FakeClock clock;
  const absl::Time start = clock.Now();
  std::thread early([&] { clock.SleepUntil(start + absl::Seconds(1)); });
  std::thread late([&] { clock.SleepUntil(start + absl::Seconds(9)); });
  clock.AwaitWaiters(2);
  clock.Advance(absl::Seconds(1));
  early.join();
  clock.AwaitWaiters(1);
  clock.Advance(absl::Seconds(8));
  late.join();
}

TEST(FakeClock, AConditionEndsAWait) {
  FakeClock clock;
  for (int i = 0; i < 200; ++i) {
    absl::Mutex mutex;
    bool done = false, result = false;
    std::thread waiter([&] {
      absl::MutexLock lock(&mutex);
      result =
          clock.AwaitWithDeadline(&mutex, absl::Condition(&done), clock.Now() + absl::Seconds(1));
    });
    clock.AwaitWaiters(1);
    std::thread other([&] { clock.Advance(absl::Seconds(i % 2)); });  // races with `done = true`
    {
      absl::MutexLock lock(&mutex);
      done = true;
    }
    waiter.join();
    other.join();
    EXPECT_TRUE(result || i % 2 == 1);
  }
}

}  // namespace
}  // namespace tritonrl
