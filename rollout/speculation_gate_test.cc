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
    if (guess) {
      gate->Record(guessing.places, guessing.tokens, guessing.seconds);
    } else {
      gate->Record(false, 10, 0.01);
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

TEST(SpeculationGate, StepsThatTakeLongForOtherReasonsDoNotCount) {
  for (const bool pays : {false, true}) {
    SpeculationGate gate;
    // Without guesses each seventh takes a hundred times as long.
    for (int i = 0; i < kTried; ++i) gate.Record(false, 10, i % 7 == 3 ? 1.0 : 0.01);
    for (int i = 0; i < kTried; ++i) {
      ASSERT_TRUE(gate.guess()) << i;
      if (i % 3 == 0) gate.Record(true, 20, 1.0);
      gate.Record(true, pays ? 11 : 10, 0.01);
    }
    EXPECT_EQ(gate.guess(), pays);
  }
}

TEST(SpeculationGate, StepsThatAllTakeLongCountInTheEnd) {
  SpeculationGate gate;
  RunSteps(&gate, kTried, {});
  EXPECT_EQ(RunSteps(&gate, 2 * kTried + kKept, {.tokens = 20, .seconds = 1}), 2 * kTried);
}

// Of a lone sample's steps few have guesses; they take a little longer and give several tokens.
TEST(SpeculationGate, StepsWithManyGuessesCountThoughTheyAreTheSlowest) {
  SpeculationGate gate;
  for (int i = 0; i < kTried; ++i) gate.Record(false, 1, 0.0042);
  for (int i = 0; i < kTried; ++i) {
    ASSERT_TRUE(gate.guess());
    const bool guesses = i % 4 == 0;
    if (guesses) gate.Record(true, 6, 0.05);  // the first of a kind makes a graph
    gate.Record(true, guesses ? 6 : 1, guesses ? 0.0047 : 0.0045);
  }
  EXPECT_TRUE(gate.guess());
}

}  // namespace
}  // namespace tritonrl
