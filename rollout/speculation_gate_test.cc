#include "rollout/speculation_gate.h"

#include <gtest/gtest.h>

namespace tritonrl {
namespace {

// How a step goes with guesses.
struct Guessing {
  int64_t guesses = 12;
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
      gate->Record(guessing.guesses, guessing.tokens, extra + guessing.seconds);
    } else {
      gate->Record(0, 10, extra + 0.01);
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

TEST(SpeculationGate, AStepWithoutAGuessSaysNothing) {
  SpeculationGate gate;
  RunSteps(&gate, kTried, {});
  EXPECT_EQ(RunSteps(&gate, 50, {.guesses = 0, .tokens = 100}), 50) << "still to be tried";
  EXPECT_EQ(RunSteps(&gate, kTried + kKept, {.tokens = 11}), kTried);
  RunSteps(&gate, kKept + kTried, {});
  EXPECT_EQ(RunSteps(&gate, 200, {.guesses = 0, .tokens = 100}), SpeculationGate::kSilent)
      << "there is nothing to guess";
}

}  // namespace
}  // namespace tritonrl
