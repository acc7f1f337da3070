#include "rollout/speculation_gate.h"

#include <gtest/gtest.h>

namespace tritonrl {
namespace {

// Steps with guesses among `steps`, when a step takes so long and gives so many tokens.
int Guessing(SpeculationGate* gate, int steps, double plain_seconds, double guess_seconds,
             int64_t guess_tokens) {
  int guessing = 0;
  for (int i = 0; i < steps; ++i) {
    const bool guess = gate->guess();
    guessing += guess ? 1 : 0;
    // Now and then one takes long whatever it does.
    const double extra = i % 7 == 3 ? 1.0 : 0.0;
    gate->Record(guess ? guess_tokens : 10, extra + (guess ? guess_seconds : plain_seconds));
  }
  return guessing;
}

constexpr int kRound = 2 * SpeculationGate::kTried + SpeculationGate::kKept;

TEST(SpeculationGate, KeepsToWhatGivesMoreTokensASecond) {
  SpeculationGate gate;
  EXPECT_EQ(Guessing(&gate, kRound, 0.01, 0.012, 20), kRound - SpeculationGate::kTried);
  EXPECT_EQ(Guessing(&gate, kRound, 0.01, 0.012, 11), SpeculationGate::kTried)
      << "it no longer pays";
  EXPECT_EQ(Guessing(&gate, kRound, 0.01, 0.01, 10), SpeculationGate::kTried) << "no gain";
  EXPECT_EQ(Guessing(&gate, kRound, 0.01, 0.01, 11), kRound - SpeculationGate::kTried);
}

}  // namespace
}  // namespace tritonrl
