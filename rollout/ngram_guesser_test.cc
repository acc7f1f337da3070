#include "rollout/ngram_guesser.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tritonrl {
namespace {

using Tokens = std::vector<int32_t>;

void AppendAll(const Tokens& tokens, int sample, NgramGuesser* guesser) {
  for (int32_t token : tokens) guesser->Append(sample, token);
}

TEST(NgramGuesser, SaysWhatThePromptSaidThere) {
  NgramGuesser guesser(Tokens{10, 11, 12, 13, 14, 15, 16, 17}, 2, 8);
  EXPECT_TRUE(guesser.Guess(0).empty());
  AppendAll({1, 11, 12}, 0, &guesser);
  EXPECT_TRUE(guesser.Guess(0).empty()) << "two tokens in common are too few";
  guesser.Append(0, 13);
  EXPECT_EQ(guesser.Guess(0), (Tokens{14, 15, 16, 17}));
  EXPECT_EQ(guesser.Guess(1), (Tokens{1, 11, 12, 13})) << "what sample 0 began with";
}

TEST(NgramGuesser, SaysWhatAnotherSampleOfTheGroupSaidLast) {
  NgramGuesser guesser(Tokens{10, 11, 12, 13}, 3, 8);
  AppendAll({1, 2, 3, 20, 21}, 0, &guesser);
  AppendAll({1, 2, 3}, 1, &guesser);
  EXPECT_EQ(guesser.Guess(1), (Tokens{20, 21}));
  AppendAll({30, 31}, 1, &guesser);
  AppendAll({1, 2, 3}, 2, &guesser);
  EXPECT_EQ(guesser.Guess(2), (Tokens{30, 31})) << "the latest";
}

TEST(NgramGuesser, ALongerRunInCommonSaysMore) {
  const Tokens once = {1, 2, 3, 4, 5, 6, 7, 8};
  Tokens prompt = once;
  prompt.insert(prompt.end(), {50, 51, 52, 6, 7, 8, 60, 61, 62, 63});
  NgramGuesser guesser(prompt, 1, 8);
  AppendAll(once, 0, &guesser);
  EXPECT_EQ(guesser.Guess(0), (Tokens{50, 51, 52, 6}));
}

TEST(NgramGuesser, TellsATokenEarlierThatThereMayBeAGuess) {
  NgramGuesser guesser(Tokens{10, 11, 12, 13, 14, 15, 16, 17}, 1, 8);
  AppendAll({1, 11}, 0, &guesser);
  EXPECT_FALSE(guesser.MayGuessNext(0));
  guesser.Append(0, 12);
  EXPECT_TRUE(guesser.MayGuessNext(0));
  EXPECT_TRUE(guesser.Guess(0).empty());
  guesser.Append(0, 13);
  EXPECT_FALSE(guesser.Guess(0).empty());
  guesser.Told(0, 4, 0);
  for (int token = 0; token < 7; ++token) {
    EXPECT_FALSE(guesser.MayGuessNext(0)) << "rests";
    guesser.Append(0, token % 2 == 0 ? 14 : 15);
  }
  EXPECT_TRUE(guesser.MayGuessNext(0));
}

TEST(NgramGuesser, AFirstTokenThatContinuesThePrompt) {
  NgramGuesser guesser(Tokens{5, 6, 7, 8, 9, 5, 6, 7}, 1, 8);
  EXPECT_EQ(guesser.Guess(0), (Tokens{8, 9, 5, 6}));
}

TEST(NgramGuesser, NeverMoreThanAsked) {
  NgramGuesser guesser(Tokens{1, 2, 3, 4, 5, 6, 7}, 1, 2);
  AppendAll({1, 2, 3}, 0, &guesser);
  EXPECT_EQ(guesser.Guess(0), (Tokens{4, 5}));
  guesser.Told(0, 2, 2);
  EXPECT_EQ(guesser.Guess(0), (Tokens{4, 5}));
}

TEST(NgramGuesser, GuessesGrowWhileTheyAreRight) {
  Tokens prompt(100);
  std::iota(prompt.begin(), prompt.end(), 0);
  NgramGuesser guesser(prompt, 1, 10);
  AppendAll({3, 4, 5}, 0, &guesser);
  const auto told = [&](int right) {
    const int guessed = static_cast<int>(guesser.Guess(0).size());
    guesser.Told(0, guessed, right);
    return guessed;
  };
  EXPECT_EQ(told(4), 4);
  EXPECT_EQ(told(8), 8);
  EXPECT_EQ(told(10), 10);
  EXPECT_EQ(told(1), 10);
  EXPECT_EQ(told(0), 3);
  for (int token = 3; token < 11; ++token) {
    EXPECT_EQ(told(0), 0) << "rests";
    guesser.Append(0, token);
  }
  EXPECT_EQ(told(2), 2);
  EXPECT_EQ(told(0), 4);
}

}  // namespace
}  // namespace tritonrl
