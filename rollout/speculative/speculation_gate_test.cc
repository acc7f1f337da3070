#include "rollout/speculative/speculation_gate.h"

#include <gtest/gtest.h>

namespace tritonrl {
namespace {

using Step = SpeculationGate::Step;

constexpr int kTrialSteps = SpeculationGate::kTrialSteps,
              kRetrialInterval = SpeculationGate::kRetrialInterval;
constexpr int kBaselineInterval = SpeculationGate::kBaselineInterval;

// Ten samples: without draft tokens ten tokens in 0.01 s.
constexpr Step kPlain = {.samples = 10, .tokens = 10, .seconds = 0.01};
constexpr Step kPays = {.speculated = true, .samples = 10, .tokens = 20, .seconds = 0.012};
constexpr Step kCosts = {.speculated = true, .samples = 10, .tokens = 12, .seconds = 0.012};

// How many of `steps` steps the gate wants with draft tokens, which then go like `speculated`.
int RunSteps(SpeculationGate* gate, int steps, const Step& speculated) {
  int wanted = 0;
  for (int i = 0; i < steps; ++i) {
    const bool draft_token = gate->speculate();
    wanted += draft_token ? 1 : 0;
    gate->Record(draft_token ? speculated : kPlain);
  }
  return wanted;
}

TEST(SpeculationGate, DraftTokensWhileThatGivesMoreForItsTime) {
  SpeculationGate gate;
  EXPECT_EQ(RunSteps(&gate, kTrialSteps, kPays), 0) << "steps without come first";
  EXPECT_EQ(RunSteps(&gate, 10 * kTrialSteps, kPays), 10 * kTrialSteps);
  EXPECT_EQ(RunSteps(&gate, 2 * kRetrialInterval, kCosts), kTrialSteps) << "it no longer pays";
  EXPECT_EQ(RunSteps(&gate, kTrialSteps, kCosts), 0);
  EXPECT_EQ(RunSteps(&gate, kTrialSteps + kTrialSteps + 4 * kRetrialInterval, kCosts), kTrialSteps)
      << "tried less often";
  EXPECT_EQ(RunSteps(&gate, 9 * kTrialSteps, kPays), 8 * kTrialSteps) << "it pays again";
}

TEST(SpeculationGate, TheGainMustBeLargerThanTheTime) {
  for (const int64_t tokens : {12, 13}) {
    SpeculationGate gate;
    RunSteps(&gate, kTrialSteps, kPays);
    RunSteps(&gate, kTrialSteps,
             {.speculated = true, .samples = 10, .tokens = tokens, .seconds = 0.012});
    EXPECT_EQ(gate.speculate(), tokens == 13) << tokens;
  }
}

// Of a lone sample's steps few have draft tokens; they take a little longer and give several
// tokens, after stretches in which there is nothing to propose.
TEST(SpeculationGate, StepsWithNothingToDraftSayNothing) {
  SpeculationGate gate;
  const Step plain = {.samples = 1, .tokens = 1, .seconds = 0.0041};
  for (int i = 0; i < kTrialSteps; ++i) gate.Record(plain);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(gate.speculate()) << i;
    if (i % 100 < 6) {
      gate.Record({.speculated = true, .samples = 1, .tokens = 5, .seconds = 0.0046});
    } else {
      gate.Record(plain);
    }
  }
}

TEST(SpeculationGate, StepsThatTakeLongForOtherReasonsDoNotCount) {
  for (const bool pays : {false, true}) {
    SpeculationGate gate;
    // Without draft tokens each seventh takes a hundred times as long.
    for (int i = 0; i < kTrialSteps; ++i) {
      gate.Record({.samples = 10, .tokens = 10, .seconds = i % 7 == 3 ? 1.0 : 0.01});
    }
    for (int i = 0; i < kTrialSteps; ++i) {
      ASSERT_TRUE(gate.speculate()) << i;
      if (i % 3 == 0) gate.Record({.speculated = true, .samples = 10, .tokens = 20, .seconds = 1});
      gate.Record(pays ? kPays : kCosts);
    }
    EXPECT_EQ(gate.speculate(), pays);
  }
}

TEST(SpeculationGate, StepsThatAllTakeLongCountInTheEnd) {
  SpeculationGate gate;
  const Step slow = {.speculated = true, .samples = 10, .tokens = 20, .seconds = 1};
  RunSteps(&gate, kTrialSteps, slow);
  EXPECT_EQ(RunSteps(&gate, 2 * kTrialSteps + kRetrialInterval, slow), 2 * kTrialSteps);
}

TEST(SpeculationGate, AnotherNumberOfSamplesIsTimedAnew) {
  SpeculationGate gate;
  RunSteps(&gate, 2 * kTrialSteps, kPays);
  // Seven samples take half the time: with the old times this would pay.
  const Step plain = {.samples = 7, .tokens = 7, .seconds = 0.005};
  const Step speculated = {.speculated = true, .samples = 7, .tokens = 7, .seconds = 0.0052};
  ASSERT_TRUE(gate.speculate());
  gate.Record(speculated);
  for (int i = 0; i < kTrialSteps; ++i) {
    ASSERT_FALSE(gate.speculate()) << i;
    gate.Record(plain);
  }
  for (int i = 0; i < kTrialSteps; ++i) {
    ASSERT_TRUE(gate.speculate()) << i;
    gate.Record(speculated);
  }
  EXPECT_FALSE(gate.speculate());
}

TEST(SpeculationGate, AfterManyStepsThoseWithoutAreTimedAnew) {
  SpeculationGate gate;
  RunSteps(&gate, kTrialSteps, kPays);
  EXPECT_EQ(RunSteps(&gate, kBaselineInterval, kPays), kBaselineInterval);
  EXPECT_EQ(RunSteps(&gate, 2 * kTrialSteps, kPays), kTrialSteps);
}

}  // namespace
}  // namespace tritonrl
