#include "rollout/speculation_gate.h"

#include <gtest/gtest.h>

namespace tritonrl {
namespace {

// How a step goes with guesses.
struct Guessing {
  bool places = true;
  int64_t tokens = 20;
  double seconds = 0.012;
};

// Steps with guesses among `steps`; those without give 10 tokens in 0.01 s.
int RunSteps(SpeculationGate* gate, int steps, const Guessing& guessing) {
  int guessed = 0;
  for (int i = 0; i < steps; ++i) {
    const bool guess = gate->guess();
    guessed += guess ? 1 : 0;
    // Now and then one takes long whatever it does.
    const double extra = i % 7 == 3 ? 1.0 : 0.0;
    if (guess) {
      gate->Record(guessing.places, guessing.tokens, extra + guessing.seconds);
    } else {
      gate->Record(false, 10, extra + 0.01);
    }
  }
  return guessed;
}

constexpr int kTried = SpeculationGate::kTried, kKept = SpeculationGate::kKept;

TEST(SpeculationGate, KeepsToWhatGivesMoreTokensASecond) {
  SpeculationGate gate;
  EXPECT_EQ(RunSteps(&gate, 2 * kTried + kKept, {}), kTried + kKept);
  EXPECT_EQ(RunSteps(&gate, 2 * kTried + 2 * kKept, {.tokens = 11}), kTried) << "it no longer pays";
  EXPECT_EQ(RunSteps(&gate, 2 * kTried + 4 * kKept, {.tokens = 10, .seconds = 0.01}), kTried)
      << "no gain, tried less often";
  EXPECT_EQ(RunSteps(&gate, 2 * kTried + kKept, {.tokens = 11, .seconds = 0.01}), kTried + kKept);
}

TEST(SpeculationGate, AStepWithoutPlacesForGuessesSaysNothing) {
  SpeculationGate gate;
  RunSteps(&gate, kTried, {});
  EXPECT_EQ(RunSteps(&gate, 50, {.places = false, .tokens = 100}), 50) << "still to be tried";
  EXPECT_EQ(RunSteps(&gate, kTried + kKept, {.tokens = 11}), kTried);
}

// Most steps had nothing to guess but ran without the overlap of steps: the trial has them too.
TEST(SpeculationGate, WhatGuessingCostsCounts) {
  SpeculationGate gate;
  RunSteps(&gate, kTried, {});
  for (int i = 0; i < kTried; ++i) {
    ASSERT_TRUE(gate.guess());
    gate.Record(true, i % 5 == 0 ? 12 : 10, 0.011);
  }
  EXPECT_FALSE(gate.guess());
}

// Of a lone sample's steps few have guesses; they take a little longer and give several tokens.
TEST(SpeculationGate, StepsWithManyGuessesCountThoughTheyAreTheSlowest) {
  SpeculationGate gate;
  for (int i = 0; i < kTried; ++i) gate.Record(false, 1, 0.0042);
  for (int i = 0; i < kTried; ++i) {
    ASSERT_TRUE(gate.guess());
    const bool guesses = i % 4 == 0;
    // Two of them make graphs.
    gate.Record(true, guesses ? 6 : 1, (guesses ? 0.0047 : 0.0045) + (i == 0 || i == 8 ? 0.05 : 0));
  }
  EXPECT_TRUE(gate.guess());
}

}  // namespace
}  // namespace tritonrl
