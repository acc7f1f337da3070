#include "base/endpoint/window_limit.h"

#include <gtest/gtest.h>

namespace tritonrl {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000000);

absl::Time At(double seconds) { return kStart + absl::Seconds(seconds); }

TEST(WindowLimitTest, NoMinuteHoldsMoreThanTheLimit) {
  WindowLimit limit(3);
  for (const double second : {0.0, 10.0, 20.0}) {
    EXPECT_EQ(limit.EarliestStart(1, At(second)), At(second));
    limit.Add(1, At(second));
  }
  EXPECT_EQ(limit.EarliestStart(1, At(30)), At(60));
  EXPECT_EQ(limit.EarliestStart(2, At(30)), At(70));
  EXPECT_EQ(limit.EarliestStart(1, At(60)), At(60));
  limit.Add(1, At(60));
  EXPECT_EQ(limit.EarliestStart(1, At(60)), At(70));
}

TEST(WindowLimitTest, EstimatesAreCorrected) {
  WindowLimit limit(1000);
  const int64_t number = limit.Add(900, At(0));
  EXPECT_EQ(limit.EarliestStart(500, At(1)), At(60));
  limit.Correct(number, 200);
  EXPECT_EQ(limit.EarliestStart(500, At(1)), At(1));
  limit.Correct(number, 2000);
  EXPECT_EQ(limit.EarliestStart(1, At(59)), At(60));
  EXPECT_EQ(limit.EarliestStart(1000, At(60)), At(60));
  limit.Correct(number, 1);  // it has left the window
  EXPECT_EQ(limit.EarliestStart(1000, At(60)), At(60));
}

TEST(WindowLimitTest, AnAmountAboveTheLimitStartsAlone) {
  WindowLimit limit(10);
  EXPECT_EQ(limit.EarliestStart(50, At(0)), At(0));
  limit.Add(50, At(0));
  EXPECT_EQ(limit.EarliestStart(1, At(1)), At(60));
}

TEST(WindowLimitTest, ZeroIsNoLimit) {
  WindowLimit limit(0);
  for (int i = 0; i < 100; ++i) limit.Correct(limit.Add(1000, At(0)), 5);
  EXPECT_EQ(limit.EarliestStart(1000, At(0)), At(0));
}

}  // namespace
}  // namespace tritonrl
