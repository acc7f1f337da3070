#include "exec/timing_rounds.h"

#include <gtest/gtest.h>

#include <vector>

namespace tritonrl {
namespace {

// Pairs of n and 2n calls: `fixed` a round, `call` a call outside, `event` a call inside.
std::vector<TimedRound> Rounds(double fixed, double call, double event, int n = 8) {
  std::vector<TimedRound> rounds;
  for (const int calls : {n, 2 * n, n, 2 * n, 2 * n, n}) {
    rounds.push_back({calls, fixed + call * calls, std::vector<double>(calls, event)});
  }
  return rounds;
}

TEST(TimingRoundsTest, TheSlopeLeavesOutWhatARoundCosts) {
  const TimePerCall time = Summarize(Rounds(0.5, 3e-4, 2e-4));
  EXPECT_NEAR(time.event, 2e-4, 1e-12);
  EXPECT_NEAR(time.outside, 3e-4, 1e-9);
  EXPECT_EQ(Summarize({}).event, 0);
}

TEST(TimingRoundsTest, OneDisturbedPairDoesNotMoveTheMedian) {
  std::vector<TimedRound> rounds = Rounds(0.5, 3e-4, 2e-4);
  rounds[1].outside_seconds += 1;
  EXPECT_NEAR(Summarize(rounds).outside, 3e-4, 1e-9);
}

TEST(TimingRoundsTest, WhatSurroundsACallIsTakenFromTheReference) {
  const TimePerCall reference = Summarize(Rounds(0.1, 250e-6, 150e-6));  // 100 us around a call
  EXPECT_NEAR(OutsideSeconds(reference, Summarize(Rounds(0.2, 180e-6, 80e-6))), 80e-6, 1e-9);
}

TEST(TimingRoundsTest, AFasterStoryThanTheClockIsNotBelieved) {
  EXPECT_TRUE(IsBelievable(80e-6, 80e-6));
  EXPECT_TRUE(IsBelievable(80e-6, 60e-6));  // slower than it need be: its own loss
  EXPECT_TRUE(IsBelievable(10e-6, 29e-6));  // within 20 us
  EXPECT_FALSE(IsBelievable(10e-6, 31e-6));
  EXPECT_TRUE(IsBelievable(51e-5, 100e-5));  // within half
  EXPECT_FALSE(IsBelievable(49e-5, 100e-5));
  EXPECT_FALSE(IsBelievable(1e-9, 1.0));
}

}  // namespace
}  // namespace tritonrl
