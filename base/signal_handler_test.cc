#include <gtest/gtest.h>
#include <signal.h>

#include "base/program.h"

namespace tritonrl {
namespace {

TEST(InterruptsTest, TheFirstSignalIsNotedTheSecondEnds) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  {
    const SignalHandler interrupts;
    EXPECT_EQ(interrupts.received(), 0);
    raise(SIGTERM);
    EXPECT_EQ(interrupts.received(), SIGTERM);
  }
  const auto twice = [] {
    const SignalHandler interrupts;
    raise(SIGINT);
    raise(SIGINT);
  };
  EXPECT_EXIT(twice(), testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(
      {
        { const SignalHandler gone; }
        raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST(InterruptsTest, ARepeatableSignalEndsNothing) {
  const SignalHandler stop({SIGINT}, {SIGTERM, SIGUSR1});
  EXPECT_FALSE(stop.requested());
  raise(SIGUSR1);
  raise(SIGTERM);
  raise(SIGTERM);
  EXPECT_TRUE(stop.requested());
  EXPECT_EQ(stop.received(), SIGTERM);
}

}  // namespace
}  // namespace tritonrl
