#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/program/training_program.h"

namespace tritonrl {
namespace {

TEST(StartupTimerTest, NamesWhatTookLongAndSumsTheRest) {
  absl::Time now = absl::FromUnixSeconds(1000);
  StartupTimer startup_timer(absl::Seconds(2), [&] { return now; });
  const auto part = [&](double seconds, const char* name) {
    now += absl::Seconds(seconds);
    startup_timer.EndPhase(name);
  };
  part(0.04, "folder");
  part(1.25, "weights");
  part(0.02, "plan");
  part(0.5, "weights");
  EXPECT_EQ(
      startup_timer.Summary(),
      "first step begins 3.8 s after the launch: launch 2.0 s, weights 1.8 s, the rest 0.1 s");
}

TEST(StartupTimerTest, CountsFromTheLaunchOfThisProcess) {
  const std::string text = StartupTimer().Summary();
  EXPECT_THAT(text, testing::StartsWith("first step begins "));
  // An age of 100 s or more would be a wrong reading of the process's start time.
  EXPECT_THAT(text, testing::ContainsRegex("begins [0-9]\\.[0-9] s|begins [1-9][0-9]\\.[0-9] s"));
}

}  // namespace
}  // namespace tritonrl
