#include "rollout/speculation_gate.h"

#include <gtest/gtest.h>

namespace tritonrl {
namespace {

using Step = SpeculationGate::Step;

constexpr int kTried = SpeculationGate::kTried, kKept = SpeculationGate::kKept;
constexpr int kRenewed = SpeculationGate::kRenewed;

// Ten samples: without guesses ten tokens in 0.01 s.
constexpr Step kPlain = {.samples = 10, .tokens = 10, .seconds = 0.01};
constexpr Step kPays = {.guessed = true, .samples = 10, .tokens = 20, .seconds = 0.012};
constexpr Step kCosts = {.guessed = true, .samples = 10, .tokens = 12, .seconds = 0.012};

// How many of `steps` steps the gate wants with guesses, which then go like `guessed`.
int RunSteps(SpeculationGate* gate, int steps, const Step& guessed) {
  int wanted = 0;
  for (int i = 0; i < steps; ++i) {
    const bool guess = gate->guess();
    wanted += guess ? 1 : 0;
    gate->Record(guess ? guessed : kPlain);
  }
  return wanted;
}

TEST(SpeculationGate, GuessesWhileThatGivesMoreForItsTime) {
  SpeculationGate gate;
  EXPECT_EQ(RunSteps(&gate, kTried, kPays), 0) << "steps without come first";
  EXPECT_EQ(RunSteps(&gate, 10 * kTried, kPays), 10 * kTried);
  EXPECT_EQ(RunSteps(&gate, 2 * kKept, kCosts), kTried) << "it no longer pays";
  EXPECT_EQ(RunSteps(&gate, kTried, kCosts), 0);
  EXPECT_EQ(RunSteps(&gate, kTried + kTried + 4 * kKept, kCosts), kTried) << "tried less often";
  EXPECT_EQ(RunSteps(&gate, 9 * kTried, kPays), 8 * kTried) << "it pays again";
}

TEST(SpeculationGate, TheGainMustBeLargerThanTheTime) {
  for (const int64_t tokens : {12, 13}) {
    SpeculationGate gate;
    RunSteps(&gate, kTried, kPays);
    RunSteps(&gate, kTried, {.guessed = true, .samples = 10, .tokens = tokens, .seconds = 0.012});
    EXPECT_EQ(gate.guess(), tokens == 13) << tokens;
  }
}

// Of a lone sample's steps few have guesses; they take a little longer and give several tokens,
// after stretches in which there is nothing to guess.
TEST(SpeculationGate, StepsWithNothingToGuessSayNothing) {
  SpeculationGate gate;
  const Step plain = {.samples = 1, .tokens = 1, .seconds = 0.0041};
  for (int i = 0; i < kTried; ++i) gate.Record(plain);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(gate.guess()) << i;
    if (i % 100 < 6) {
      gate.Record({.guessed = true, .samples = 1, .tokens = 5, .seconds = 0.0046});
    } else {
      gate.Record(plain);
    }
  }
}

TEST(SpeculationGate, StepsThatTakeLongForOtherReasonsDoNotCount) {
  for (const bool pays : {false, true}) {
    SpeculationGate gate;
    // Without guesses each seventh takes a hundred times as long.
    for (int i = 0; i < kTried; ++i) {
      gate.Record({.samples = 10, .tokens = 10, .seconds = i % 7 == 3 ? 1.0 : 0.01});
    }
    for (int i = 0; i < kTried; ++i) {
      ASSERT_TRUE(gate.guess()) << i;
      if (i % 3 == 0) gate.Record({.guessed = true, .samples = 10, .tokens = 20, .seconds = 1});
      gate.Record(pays ? kPays : kCosts);
    }
    EXPECT_EQ(gate.guess(), pays);
  }
}

TEST(SpeculationGate, StepsThatAllTakeLongCountInTheEnd) {
  SpeculationGate gate;
  const Step slow = {.guessed = true, .samples = 10, .tokens = 20, .seconds = 1};
  RunSteps(&gate, kTried, slow);
  EXPECT_EQ(RunSteps(&gate, 2 * kTried + kKept, slow), 2 * kTried);
}

TEST(SpeculationGate, AnotherNumberOfSamplesIsTimedAnew) {
  SpeculationGate gate;
  RunSteps(&gate, 2 * kTried, kPays);
  // Seven samples take half the time: with the old times this would pay.
  const Step plain = {.samples = 7, .tokens = 7, .seconds = 0.005};
  const Step guessed = {.guessed = true, .samples = 7, .tokens = 7, .seconds = 0.0052};
  ASSERT_TRUE(gate.guess());
  gate.Record(guessed);
  for (int i = 0; i < kTried; ++i) {
    ASSERT_FALSE(gate.guess()) << i;
    gate.Record(plain);
  }
  for (int i = 0; i < kTried; ++i) {
    ASSERT_TRUE(gate.guess()) << i;
    gate.Record(guessed);
  }
  EXPECT_FALSE(gate.guess());
}

TEST(SpeculationGate, AfterManyStepsThoseWithoutAreTimedAnew) {
  SpeculationGate gate;
  RunSteps(&gate, kTried, kPays);
  EXPECT_EQ(RunSteps(&gate, kRenewed, kPays), kRenewed);
  EXPECT_EQ(RunSteps(&gate, 2 * kTried, kPays), kTried);
}

}  // namespace
}  // namespace tritonrl
