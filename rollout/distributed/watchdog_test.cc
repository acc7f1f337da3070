#include "rollout/distributed/watchdog.h"

#include <gtest/gtest.h>

#include "base/testing/fake_clock.h"

namespace tritonrl {
namespace {

TEST(Watchdog, CallsThatEndAndTimeBetweenThemAreLeftAlone) {
  FakeClock clock;
  Watchdog watch("a step", absl::Milliseconds(800), &clock);
  for (int i = 0; i < 4; ++i) {
    const Watchdog::Call call(&watch);
    clock.AwaitWaiters(1);
    clock.Advance(absl::Milliseconds(799));
    clock.AwaitWaiters(1);  // the watchdog has checked, and waits again
  }
  clock.Advance(absl::Milliseconds(2000));
  clock.AwaitWaiters(1);
}

TEST(WatchdogDeathTest, ACallThatDoesNotEndEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        FakeClock clock;
        Watchdog watch("rank 1: a step", absl::Milliseconds(80), &clock);
        const Watchdog::Call call(&watch);
        clock.Advance(absl::Milliseconds(80));
        clock.SleepUntil(absl::InfiniteFuture());
      },
      testing::ExitedWithCode(1),
      "rank 1: a step has not ended within 80ms; another rank is stuck");
}

}  // namespace
}  // namespace tritonrl
