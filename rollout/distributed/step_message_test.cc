#include "rollout/distributed/step_message.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tritonrl {
namespace {

// A chunk of a prompt without a slot, a sequence whose last token is in its slot, and draft tokens.
struct Example {
  std::vector<PageCopy> copies = {{3, 4}, {5, 6}};
  std::vector<int32_t> prompt = {10, 11, 12}, drafted = {20, 21}, pages = {7, 8, 9};
  SamplingSettings cold = {.temperature = 0.25, .top_p = 0.5, .top_k = 40};
  SamplingSettings plain;
  ModelStep step;

  Example() {
    step.copies = copies;
    step.slices = {{.tokens = prompt, .first = 16, .count = 3, .pages = {pages.data(), 2}},
                   {.slot = 5, .first = 17, .count = 1, .pages = {pages.data() + 1, 2}, .draws = 1},
                   {.tokens = drafted,
                    .slot = 2,
                    .first = 40,
                    .count = 2,
                    .pages = pages,
                    .draws = 2,
                    .num_draft_tokens = 1}};
    step.draws = {{.slot = 5, .sampling = &cold, .stream = uint64_t{1} << 63, .position = 9},
                  {.slot = 2, .sampling = &plain, .stream = 6, .position = 1},
                  {.slot = -1, .sampling = &plain, .stream = 6, .position = 2}};
  }
};

std::vector<int32_t> List(std::span<const int32_t> values) {
  return {values.begin(), values.end()};
}

TEST(StepMessage, AStepComesOutAsItWentIn) {
  const Example sent;
  const auto came = StepMessage::Decode(EncodeLaunch(sent.step));
  ASSERT_TRUE(came.ok()) << came.status();
  EXPECT_EQ(came->command(), StepCommand::kLaunch);
  const ModelStep& step = came->step();
  ASSERT_EQ(step.copies.size(), 2u);
  EXPECT_EQ(step.copies[1].from, 5);
  EXPECT_EQ(step.copies[1].to, 6);
  ASSERT_EQ(step.slices.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const SequenceSlice &a = step.slices[i], &b = sent.step.slices[i];
    EXPECT_EQ(List(a.tokens), List(b.tokens));
    EXPECT_EQ(List(a.pages), List(b.pages));
    EXPECT_EQ(a.slot, b.slot);
    EXPECT_EQ(a.first, b.first);
    EXPECT_EQ(a.count, b.count);
    EXPECT_EQ(a.draws, b.draws);
    EXPECT_EQ(a.num_draft_tokens, b.num_draft_tokens);
  }
  ASSERT_EQ(step.draws.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const StepDraw &a = step.draws[i], &b = sent.step.draws[i];
    EXPECT_EQ(a.slot, b.slot);
    EXPECT_EQ(a.stream, b.stream);
    EXPECT_EQ(a.position, b.position);
    EXPECT_EQ(a.sampling->temperature, b.sampling->temperature);
    EXPECT_EQ(a.sampling->top_p, b.sampling->top_p);
    EXPECT_EQ(a.sampling->top_k, b.sampling->top_k);
  }
}

TEST(StepMessage, CommandsAndAnswers) {
  for (const StepCommand command :
       {StepCommand::kCollect, StepCommand::kWake, StepCommand::kHeartbeat, StepCommand::kEnd}) {
    const auto came = StepMessage::Decode(EncodeCommand(command));
    ASSERT_TRUE(came.ok()) << came.status();
    EXPECT_EQ(came->command(), command);
  }
  for (const absl::Status& status :
       {absl::OkStatus(), absl::ResourceExhaustedError("no room: lower cache_bytes")}) {
    EXPECT_EQ(DecodeStatus(EncodeStatus(status)), status);
  }
  EXPECT_TRUE(absl::IsDataLoss(DecodeStatus("what")));
}

TEST(StepMessage, WhatIsCutOrDamagedIsRefused) {
  const std::string text = EncodeLaunch(Example().step);
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(StepMessage::Decode(text.substr(0, size)).status())) << size;
  }
  EXPECT_TRUE(absl::IsDataLoss(StepMessage::Decode(text + "x").status()));
  EXPECT_TRUE(absl::IsDataLoss(StepMessage::Decode("\x7f").status()));
  EXPECT_TRUE(
      absl::IsDataLoss(StepMessage::Decode(EncodeCommand(StepCommand::kEnd) + "more").status()));
  // Counts that are too large for a text of this length.
  for (size_t place = 1; place < 41; ++place) {
    std::string wrong = text;
    wrong[place] = '\x7f';
    EXPECT_TRUE(absl::IsDataLoss(StepMessage::Decode(wrong).status())) << place;
  }
}

}  // namespace
}  // namespace tritonrl
