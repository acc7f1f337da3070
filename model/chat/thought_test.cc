#include "model/chat/thought.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/status.h"

namespace tritonrl {
namespace {

// The answer, or the error's message.
std::string After(const std::string& prompt, const std::string& content,
                  const std::optional<std::string>& reasoning) {
  const auto answer = AnswerAfter(prompt, content, reasoning);
  return answer.ok() ? *answer : Message(answer.status());
}

TEST(AnswerAfterTest, HasOneThoughtAndTheContent) {
  EXPECT_EQ(After("q", "code", "plan"), "<think>\nplan\n</think>\n\ncode");
  EXPECT_EQ(After("q", "\n\n  code", "\n plan\n"), "<think>\nplan\n</think>\n\n  code");
  EXPECT_EQ(After("q", "code", std::nullopt), "code");
  EXPECT_EQ(After("q", "<think>plan</think>code", std::nullopt), "<think>plan</think>code");
}

TEST(AnswerAfterTest, TheThoughtIsOpenedOnce) {
  EXPECT_EQ(After("q<think>\n", "code", "plan"), "plan\n</think>\n\ncode");
  EXPECT_EQ(After("q<think>", "code", "plan"), "\nplan\n</think>\n\ncode");
  EXPECT_EQ(After("q<think>\n\n", "code", "plan"), "plan\n</think>\n\ncode");
  EXPECT_EQ(After("q<think>\n", "<think>\nplan</think>code", std::nullopt), "plan</think>code");
  EXPECT_EQ(After("q<think>\n", "plan</think>code", std::nullopt), "plan</think>code");
}

TEST(AnswerAfterTest, ReasoningThatTheContentRepeatsCountsOnce) {
  EXPECT_EQ(After("q", "<think>plan</think>code", "\nplan"), "<think>\nplan\n</think>\n\ncode");
  EXPECT_EQ(After("q", "plan\n</think>\n\ncode", "plan"), "<think>\nplan\n</think>\n\ncode");
  // A mention in the code is no thought.
  EXPECT_EQ(After("q", "s = '</think>'", "plan"), "<think>\nplan\n</think>\n\ns = '</think>'");
}

TEST(AnswerAfterTest, WhatCannotBeIsSaid) {
  EXPECT_EQ(After("q", "<think>other</think>code", "plan"),
            "the turn has reasoning of its own and a content that begins with another <think>; "
            "keep one of the two");
  EXPECT_EQ(After("q<think>\n\n</think>\n\n", "code", "plan"),
            "the prompt ends with </think> (thinking is switched off), so that the turn's "
            "reasoning cannot be taught; switch thinking on, or remove the reasoning");
  EXPECT_EQ(After("q<think>\n\n</think>\n\n", "code", std::nullopt), "code");
}

}  // namespace
}  // namespace tritonrl
