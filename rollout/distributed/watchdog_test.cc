#include "rollout/distributed/watchdog.h"

#include <gtest/gtest.h>

#include "absl/time/clock.h"

namespace tritonrl {
namespace {

TEST(Watchdog, CallsThatEndAndTimeBetweenThemAreLeftAlone) {
  Watchdog watch("a step", absl::Milliseconds(800));
  for (int i = 0; i < 4; ++i) {
    const Watchdog::Call call(&watch);
    absl::SleepFor(absl::Milliseconds(1));
  }
  absl::SleepFor(absl::Milliseconds(1200));
}

TEST(WatchdogDeathTest, ACallThatDoesNotEndEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        Watchdog watch("rank 1: a step", absl::Milliseconds(80));
        const Watchdog::Call call(&watch);
        absl::SleepFor(absl::Seconds(60));
      },
      testing::ExitedWithCode(1),
      "rank 1: a step has not ended within 80ms; another rank is stuck");
}

}  // namespace
}  // namespace tritonrl
