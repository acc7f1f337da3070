#include "eval/metrics/power.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/random.h"
#include "base/status.h"
#include "eval/metrics/student_t.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tritonrl {
namespace {

using ::testing::HasSubstr;

// Printed tables of Student's t.
TEST(StudentTTest, HasTheCriticalValuesOfTables) {
  struct Case {
    double outside;
    int freedom;
    double t;
  };
  for (const Case& c : std::vector<Case>{{0.05, 1, 12.7062},
                                         {0.05, 2, 4.30265},
                                         {0.05, 3, 3.18245},
                                         {0.05, 10, 2.22814},
                                         {0.05, 30, 2.04227},
                                         {0.05, 100, 1.98397},
                                         {0.01, 1, 63.6567},
                                         {0.01, 9, 3.24984},
                                         {0.5, 3, 0.764892}}) {
    EXPECT_NEAR(StudentTCritical(c.outside, c.freedom), c.t, 6e-6 * c.t) << c.freedom;
    EXPECT_NEAR(StudentTOutside(c.t, c.freedom), c.outside, 1e-5) << c.freedom;
  }
  EXPECT_EQ(StudentTOutside(0, 5), 1);
}

// Two formulas: finite sums, and integration.
TEST(StudentTTest, ShiftedByNothingIsCentral) {
  for (const int freedom : {1, 2, 3, 8, 33, 99, 10000}) {
    for (const double outside : {0.001, 0.05, 0.5}) {
      const double t = StudentTCritical(outside, freedom);
      EXPECT_NEAR(ShiftedStudentTOutside(t, freedom, 0), outside, 1e-6) << freedom;
    }
  }
}

// Values of the other integral, over the normal variable, by another program.
TEST(StudentTTest, ShiftedHasKnownValues) {
  EXPECT_NEAR(ShiftedStudentTOutside(12.706204736, 1, 2), 0.1257563246, 1e-6);
  EXPECT_NEAR(ShiftedStudentTOutside(636.619249, 1, 2), 0.0025279063, 1e-6);
  EXPECT_NEAR(ShiftedStudentTOutside(636.619249, 1, 100), 0.1248178600, 1e-6);
  EXPECT_NEAR(ShiftedStudentTOutside(9.924843201, 2, 3), 0.0948008786, 1e-6);
  EXPECT_NEAR(ShiftedStudentTOutside(2.262157163, 9, std::sqrt(10)), 0.8030968566, 1e-6);
  EXPECT_NEAR(ShiftedStudentTOutside(1.984216952, 99, 2.5), 0.6969802741, 1e-6);
}

TEST(PowerTest, NeedsTheSeedsOfPublishedTables) {
  struct Case {
    double difference;  // in deviations
    double alpha, power;
    int seeds;
  };
  // Known sample sizes of paired t-tests.
  for (const Case& c : std::vector<Case>{{0.2, 0.05, 0.8, 199},
                                         {0.5, 0.05, 0.8, 34},
                                         {0.6, 0.05, 0.8, 24},
                                         {0.75, 0.05, 0.8, 16},
                                         {0.8, 0.05, 0.8, 15},
                                         {1, 0.05, 0.8, 10},
                                         {1.5, 0.05, 0.8, 6},
                                         {0.5, 0.05, 0.9, 44}}) {
    EXPECT_EQ(SeedsNeeded(2.5, 2.5 * c.difference, c.alpha, c.power).value(), c.seeds);
  }
}

// The smallest number: one seed fewer would not find the difference.
TEST(PowerTest, DetectableDifferenceIsTheInverse) {
  for (const double deviation : {0.1, 1.0, 7.0}) {
    const int seeds = SeedsNeeded(deviation, 3).value();
    EXPECT_LE(DetectableDifference(deviation, seeds).value(), 3);
    if (seeds > 2) {
      EXPECT_GT(DetectableDifference(deviation, seeds - 1).value(), 3);
    }
  }
  EXPECT_EQ(SeedsNeeded(0, 1).value(), 2);
  EXPECT_EQ(DetectableDifference(0, 5).value(), 0);
  // Many seeds: the normal approximation, (1.95996 + 0.84162) / sqrt(n).
  EXPECT_NEAR(DetectableDifference(1, 10000).value(), 2.80158 / 100, 1e-5);
}

// The share of simulated tests that find the difference is the power.
TEST(PowerTest, SimulatedTestsFindTheDifferenceAsOften) {
  constexpr int kTests = 20000;
  for (const int seeds : {3, 10}) {
    const double difference = DetectableDifference(1, seeds).value();
    Philox random(1, seeds);
    int found = 0;
    for (int test = 0; test < kTests; ++test) {
      double sum = 0, squares = 0;
      for (int i = 0; i < seeds; ++i) {
        const double value = difference + random.Normal();
        sum += value;
        squares += value * value;
      }
      const double mean = sum / seeds;
      const double variance = (squares - sum * mean) / (seeds - 1);
      const double t = mean / std::sqrt(variance / seeds);
      found += StudentTOutside(std::abs(t), seeds - 1) < 0.05;
    }
    EXPECT_NEAR(static_cast<double>(found) / kTests, 0.8, 0.012) << seeds;  // 4 standard errors
  }
}

TEST(PowerTest, ErrorsNameTheArgument) {
  EXPECT_THAT(Message(SeedsNeeded(-1, 1).status()), HasSubstr("deviation of differences is -1"));
  EXPECT_THAT(Message(SeedsNeeded(1, 0).status()), HasSubstr("difference is 0"));
  EXPECT_THAT(Message(SeedsNeeded(1, 1, 0).status()), HasSubstr("alpha is 0"));
  EXPECT_THAT(Message(SeedsNeeded(1, 1, 0.05, 1).status()), HasSubstr("power is 1"));
  EXPECT_EQ(SeedsNeeded(1000, 1).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(Message(DetectableDifference(1, 1).status()), HasSubstr("seeds is 1"));
}

TEST(AreaUnderCurveTest, IsTheMeanHeightOfTrapezoids) {
  using Points = std::vector<std::pair<int64_t, double>>;
  EXPECT_DOUBLE_EQ(AreaUnderCurve(Points{{0, 1}, {2, 3}, {10, 3}}).value(), 2.8);
  EXPECT_DOUBLE_EQ(AreaUnderCurve(Points{{5, 0.25}}).value(), 0.25);
  EXPECT_FALSE(AreaUnderCurve(Points{}).ok());
  EXPECT_EQ(Message(AreaUnderCurve(Points{{1, 1}, {1, 2}}).status()),
            "steps of a curve must ascend: 1, 1");
}

}  // namespace
}  // namespace tritonrl
