#include "rollout/speculative/ngram_proposer.h"

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

}  // namespace
}  // namespace tritonrl
