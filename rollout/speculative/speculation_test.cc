#include "rollout/speculative/speculation.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tritonrl {
namespace {

using Tokens = std::vector<int32_t>;

void AppendAll(const Tokens& tokens, int sample, NgramProposer* proposer) {
  for (int32_t token : tokens) proposer->Append(sample, token);
}

TEST(NgramProposer, SaysWhatThePromptSaidThere) {
  NgramProposer proposer(Tokens{10, 11, 12, 13, 14, 15, 16, 17}, 2, 8);
  EXPECT_TRUE(proposer.Propose(0).empty());
  AppendAll({1, 11, 12}, 0, &proposer);
  EXPECT_TRUE(proposer.Propose(0).empty()) << "two tokens in common are too few";
  proposer.Append(0, 13);
  EXPECT_EQ(proposer.Propose(0), (Tokens{14, 15, 16, 17}));
  EXPECT_EQ(proposer.Propose(1), (Tokens{1, 11, 12, 13})) << "what sample 0 began with";
}

TEST(NgramProposer, SaysWhatAnotherSampleOfTheGroupSaidLast) {
  NgramProposer proposer(Tokens{10, 11, 12, 13}, 3, 8);
  AppendAll({1, 2, 3, 20, 21}, 0, &proposer);
  AppendAll({1, 2, 3}, 1, &proposer);
  EXPECT_EQ(proposer.Propose(1), (Tokens{20, 21}));
  AppendAll({30, 31}, 1, &proposer);
  AppendAll({1, 2, 3}, 2, &proposer);
  EXPECT_EQ(proposer.Propose(2), (Tokens{30, 31})) << "the latest";
}

TEST(NgramProposer, ALongerRunInCommonSaysMore) {
  const Tokens once = {1, 2, 3, 4, 5, 6, 7, 8};
  Tokens prompt = once;
  prompt.insert(prompt.end(), {50, 51, 52, 6, 7, 8, 60, 61, 62, 63});
  NgramProposer proposer(prompt, 1, 8);
  AppendAll(once, 0, &proposer);
  EXPECT_EQ(proposer.Propose(0), (Tokens{50, 51, 52, 6}));
}

TEST(NgramProposer, TellsATokenEarlierThatThereMayBeADraft) {
  NgramProposer proposer(Tokens{10, 11, 12, 13, 14, 15, 16, 17}, 1, 8);
  AppendAll({1, 11}, 0, &proposer);
  EXPECT_FALSE(proposer.MayProposeNext(0));
  proposer.Append(0, 12);
  EXPECT_TRUE(proposer.MayProposeNext(0));
  EXPECT_TRUE(proposer.Propose(0).empty());
  proposer.Append(0, 13);
  EXPECT_FALSE(proposer.Propose(0).empty());
  proposer.RecordAccepted(0, 4, 0);
  for (int token = 0; token < 7; ++token) {
    EXPECT_FALSE(proposer.MayProposeNext(0)) << "rests";
    proposer.Append(0, token % 2 == 0 ? 14 : 15);
  }
  EXPECT_TRUE(proposer.MayProposeNext(0));
}

TEST(NgramProposer, AFirstTokenThatContinuesThePrompt) {
  NgramProposer proposer(Tokens{5, 6, 7, 8, 9, 5, 6, 7}, 1, 8);
  EXPECT_EQ(proposer.Propose(0), (Tokens{8, 9, 5, 6}));
}

TEST(NgramProposer, NeverMoreThanAsked) {
  NgramProposer proposer(Tokens{1, 2, 3, 4, 5, 6, 7}, 1, 2);
  AppendAll({1, 2, 3}, 0, &proposer);
  EXPECT_EQ(proposer.Propose(0), (Tokens{4, 5}));
  proposer.RecordAccepted(0, 2, 2);
  EXPECT_EQ(proposer.Propose(0), (Tokens{4, 5}));
}

TEST(NgramProposer, DraftTokensGrowWhileTheyAreRight) {
  Tokens prompt(100);
  std::iota(prompt.begin(), prompt.end(), 0);
  NgramProposer proposer(prompt, 1, 10);
  AppendAll({3, 4, 5}, 0, &proposer);
  const auto told = [&](int right) {
    const int drafted = static_cast<int>(proposer.Propose(0).size());
    proposer.RecordAccepted(0, drafted, right);
    return drafted;
  };
  EXPECT_EQ(told(4), 4);
  EXPECT_EQ(told(8), 8);
  EXPECT_EQ(told(10), 10);
  EXPECT_EQ(told(1), 10);
  EXPECT_EQ(told(0), 3);
  for (int token = 3; token < 11; ++token) {
    EXPECT_EQ(told(0), 0) << "rests";
    proposer.Append(0, token);
  }
  EXPECT_EQ(told(2), 2);
  EXPECT_EQ(told(0), 4);
}

using Step = SpeculationGate::Step;

constexpr int kTrialSteps = SpeculationGate::kTrialSteps,
              kRetrialInterval = SpeculationGate::kRetrialInterval;
constexpr int kBaselineInterval = SpeculationGate::kBaselineInterval;

// Ten samples: a plain step generates ten tokens in 0.01 s.
constexpr Step kPlain = {.samples = 10, .tokens = 10, .seconds = 0.01};
constexpr Step kPays = {.speculated = true, .samples = 10, .tokens = 20, .seconds = 0.012};
constexpr Step kCosts = {.speculated = true, .samples = 10, .tokens = 12, .seconds = 0.012};

// Records `steps` steps: `speculated` when the gate asks for draft tokens, else kPlain. Returns the
// number of steps for which the gate asked for draft tokens.
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

// Few steps of a single sample have draft tokens. These steps take a little longer and generate
// several tokens; between them come many steps without a proposal.
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
    // Every seventh plain step takes a hundred times as long.
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
  // A step of seven samples takes half the time: against the old baseline speculation would pay.
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

TEST(SpeculationGate, TheBaselineIsTimeAndSamplesOfTheSameStep) {
  SpeculationGate gate;
  // The median step has ten samples; the last steps have five, in less time.
  const Step plain = {.samples = 5, .tokens = 5, .seconds = 0.006};
  const Step speculated = {.speculated = true, .samples = 5, .tokens = 5, .seconds = 0.0062};
  for (int i = 0; i < kTrialSteps; ++i) gate.Record(i < kTrialSteps / 2 + 1 ? kPlain : plain);
  ASSERT_TRUE(gate.speculate());
  gate.Record(speculated);
  for (int i = 0; i < kTrialSteps; ++i) {
    ASSERT_FALSE(gate.speculate()) << i << ": five samples are timed anew";
    gate.Record(plain);
  }
  for (int i = 0; i < kTrialSteps; ++i) gate.Record(speculated);
  EXPECT_FALSE(gate.speculate()) << "speculation does not pay";
}

TEST(SpeculationGate, AfterManyStepsThoseWithoutAreTimedAnew) {
  SpeculationGate gate;
  RunSteps(&gate, kTrialSteps, kPays);
  EXPECT_EQ(RunSteps(&gate, kBaselineInterval, kPays), kBaselineInterval);
  EXPECT_EQ(RunSteps(&gate, 2 * kTrialSteps, kPays), kTrialSteps);
}

}  // namespace
}  // namespace tritonrl
