#include "eval/run/open_scores.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>

#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

Verdict With(std::initializer_list<std::pair<Layer, Outcome::Reason>> layers) {
  Verdict verdict;
  verdict.mutable_outcome()->set_status(Outcome::STATUS_CANDIDATE_FAILED);
  for (const auto& [layer, reason] : layers) MutableResult(layer, &verdict)->set_reason(reason);
  return verdict;
}

TEST(OpenScoresTest, WhatPassedTheChecksKeepsItsScore) {
  const auto syntax = OpenScoreOf(With({{LAYER_SYNTAX, Outcome::PARSE_ERROR}}));
  ASSERT_TRUE(syntax.has_value());
  EXPECT_FALSE(syntax->syntax);
  const auto wrong = OpenScoreOf(With({{LAYER_SYNTAX, Outcome::OK},
                                       {LAYER_FUNCTIONALITY, Outcome::OK},
                                       {LAYER_COMPILED, Outcome::OK},
                                       {LAYER_CORRECT, Outcome::MISMATCH}}));
  ASSERT_TRUE(wrong.has_value());
  EXPECT_TRUE(wrong->compiled);
  EXPECT_FALSE(wrong->correct);
}

TEST(OpenScoresTest, RefusalsOfRightCandidatesCountAsCorrect) {
  for (const Outcome::Reason reason : {Outcome::DECORATION, Outcome::HARD_CODED}) {
    const auto score =
        OpenScoreOf(With({{LAYER_SYNTAX, Outcome::OK}, {LAYER_FUNCTIONALITY, reason}}));
    ASSERT_TRUE(score.has_value());
    EXPECT_TRUE(score->correct);
    EXPECT_EQ(score->speedup, 0);
  }
}

// By the paper's rules the judge is asked about wrong candidates too.
TEST(OpenScoresTest, WithoutTheJudgeALayerStandsForItself) {
  for (const Outcome::Reason correct : {Outcome::OK, Outcome::MISMATCH}) {
    const auto score = OpenScoreOf(With({{LAYER_SYNTAX, Outcome::OK},
                                         {LAYER_FUNCTIONALITY, Outcome::OK},
                                         {LAYER_COMPILED, Outcome::OK},
                                         {LAYER_CORRECT, correct},
                                         {LAYER_JUDGE, Outcome::CHEATING}}));
    ASSERT_TRUE(score.has_value());
    EXPECT_TRUE(score->compiled);
    EXPECT_EQ(score->correct, correct == Outcome::OK);
  }
}

TEST(OpenScoresTest, WhatWasRefusedEarlyMustRun) {
  for (const Outcome::Reason reason : {Outcome::TORCH_COMPUTE, Outcome::RUNTIME_COMPUTE}) {
    EXPECT_FALSE(OpenScoreOf(With({{LAYER_SYNTAX, Outcome::OK}, {LAYER_FUNCTIONALITY, reason}}))
                     .has_value());
  }
}

}  // namespace
}  // namespace tritonrl
