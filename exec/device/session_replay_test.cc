// What a session records, and replays of it.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "exec/device/testing/session_fixture.h"

namespace tritonrl::device {
namespace {

// Storages 3: a copy of the input; 4: zeros; 5: their sum by a kernel, which is the copy again.
TEST_F(SessionTest, ReplaysFollowKernelsThatOnlyCopy) {
  const std::string launch =
      absl::StrCat(FloatTensor(3, 4), ",", FloatTensor(4, 4), ",", FloatTensor(5, 4), ",4");
  const auto result = RunForward(
      {EmptyText(4),
       OperatorText("copy_", "", absl::StrCat(FloatTensor(3, 4), ",", FloatTensor(2, 4))),
       EmptyText(4), OperatorText("zero_", "", FloatTensor(4, 4)), EmptyText(4), KernelText("add"),
       LaunchText(0, launch)},
      FloatTensor(5, 4));
  ASSERT_TRUE(result.ok()) << result.status();
  for (const bool follow : {false, true}) {
    ReplayOptions options;
    options.inputs = {at::full({4}, 3, at::kFloat)};
    options.follow_copies = follow;
    const auto replay = session_->ReplayCall(options);
    ASSERT_TRUE(replay.ok()) << replay.status();
    const TagCounts& counts = replay->provenance[0];
    EXPECT_EQ(counts.bytes[static_cast<int>(Tag::kKernel)], follow ? 0 : 16);
    EXPECT_EQ(counts.bytes[static_cast<int>(Tag::kInput)], follow ? 16 : 0);
  }
}

// The kernel adds the weight to itself.
TEST_F(SessionTest, AReplayMayFindWhatTheLastOneLeft) {
  const std::string launch =
      absl::StrCat(FloatTensor(1, 4), ",", FloatTensor(1, 4), ",", FloatTensor(1, 4), ",4");
  ASSERT_TRUE(RunForward({KernelText("add"), LaunchText(0, launch)}, FloatTensor(1, 4)).ok());
  ReplayOptions options;
  options.inputs = {at::full({4}, 1, at::kFloat)};
  const auto first = session_->ReplayCall(options);
  ASSERT_TRUE(first.ok()) << first.status();
  options.keeps_state = true;
  const auto second = session_->ReplayCall(options);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(second->output.host.equal(first->output.host.mul(2)));
}

TEST_F(SessionTest, AReplayComputesOnOtherInputsInTheSameMemory) {
  const auto result = RunHonest();
  ASSERT_TRUE(result.ok()) << result.status();
  for (const Poison poison : {Poison::kOnes, Poison::kPattern}) {
    const auto replay = ReplayWith(3, std::nullopt, poison);
    ASSERT_TRUE(replay.ok()) << replay.status();
    EXPECT_TRUE(replay->output.host.allclose(result->outputs[0].host.add(2)));
    EXPECT_EQ(replay->run.launches, 1);
    EXPECT_EQ(replay->provenance[0].bytes[static_cast<int>(Tag::kKernel)], 16);
  }
}

TEST_F(SessionTest, AReplayWithoutALaunchShowsPoison) {
  ASSERT_TRUE(RunHonest().ok());
  const auto replay = ReplayWith(1, 0);
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_TRUE(replay->output.host.isnan().all().item<bool>());
  EXPECT_EQ(replay->provenance[0].bytes[static_cast<int>(Tag::kUnwritten)], 16);
}

TEST_F(SessionTest, ReplaysNeedTheRecordedInputs) {
  ASSERT_TRUE(RunHonest().ok());
  ReplayOptions options;
  EXPECT_FALSE(session_->ReplayCall(options).ok());
  options.inputs = {at::ones({5})};
  EXPECT_FALSE(session_->ReplayCall(options).ok());
}

TEST_F(SessionTest, WhatABenchmarkDoesIsUndone) {
  const std::string scale = LaunchText(1, absl::StrCat(FloatTensor(2, 4), ",4,{\"float\":2.0}"));
  const auto result =
      RunForward({EmptyText(4), KernelText("add"), KernelText("scale"),
                  R"({"do":"bench","begin":true})", scale, scale, EmptyText(8),
                  OperatorText("fill_", "Scalar", absl::StrCat(FloatTensor(1, 4), ",9")),
                  R"({"do":"bench","begin":false})", AddText()});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(channel_->reply(12)["ms"].is_number()) << channel_->reply(12);
  EXPECT_TRUE(result->outputs[0].host.lt(2).all().item<bool>());
  EXPECT_TRUE(result->outputs[0].host.ge(1).all().item<bool>());
  const auto replay = ReplayWith(1);
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_EQ(replay->run.launches, 1);
  EXPECT_TRUE(replay->output.host.equal(result->outputs[0].host));
}

TEST_F(SessionTest, AGraphIsARangeOfCommands) {
  const auto result =
      RunForward({EmptyText(4), KernelText("add"), R"({"do":"graph","begin":true})", AddText(),
                  R"({"do":"graph","begin":false})", R"({"do":"replay","graph":0})"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(channel_->reply(8)["graph"], 0);
  EXPECT_EQ(result->counts.launches, 1);
  EXPECT_EQ(result->provenance[0].bytes[static_cast<int>(Tag::kKernel)], 16);
  const auto replay = ReplayWith(4);
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_TRUE(replay->output.host.allclose(result->outputs[0].host.add(3)));
  EXPECT_TRUE(ReplayWith(4, 0)->output.host.isnan().all().item<bool>());
}

TEST_F(SessionTest, ForwardMayNotReplayWhatItMayNotDo) {
  const std::string weight = FloatTensor(1, 20);
  const auto result = RunScript(Script(
      {R"({"do":"begin"})", EmptyText(20), OperatorText("uniform_", "", weight),
       R"({"do":"graph","begin":true})", OperatorText("exp_", "", weight),
       R"({"do":"graph","begin":false})", R"({"do":"replay","graph":0})",
       R"({"do":"constructed","state":[]})", R"({"do":"replay","graph":0})", OutputText(weight)}));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(channel_->reply(6).count("refused"), 0u);
  EXPECT_EQ(channel_->reply(8)["refused"], "aten::exp_ computes on 20 elements");
  EXPECT_EQ(result->counts.refusals.size(), 1u);
}

TEST_F(SessionTest, AGraphOfTheConstructorIsNoSecret) {
  Texts texts = Init();
  const std::string launch =
      absl::StrCat(FloatTensor(1, 4), ",", FloatTensor(1, 4), ",", FloatTensor(2, 4), ",4");
  const Texts more = {EmptyText(4),
                      KernelText("add"),
                      R"({"do":"graph","begin":true})",
                      LaunchText(0, launch),
                      R"({"do":"graph","begin":false})",
                      R"({"do":"replay","graph":0})"};
  texts.insert(texts.end() - 1, more.begin(), more.end());
  texts.push_back(OutputText(FloatTensor(1, 4)));
  const auto result = RunScript(Script(texts));
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->of_weights.size(), 1u);
  EXPECT_TRUE(absl::StartsWith(result->of_weights.begin()->first, "kernel "));
}

TEST_F(SessionTest, CapturingAloneComputesNothing) {
  const auto result = RunForward({EmptyText(4), KernelText("add"), R"({"do":"graph","begin":true})",
                                  AddText(), R"({"do":"graph","begin":false})"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->outputs[0].host.isnan().all().item<bool>());
}

TEST_F(SessionTest, ReadsAreRecordedAndCompared) {
  const std::string read = absl::StrCat(R"({"do":"read","tensor":)", FloatTensor(2, 1, 3), "}");
  const auto result = RunForward({EmptyText(4), KernelText("add"), read, AddText()});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(channel_->replies()[6].payload.size(), 4u);
  EXPECT_EQ(ReplayWith(1)->run.reads_that_differ, 0);
  EXPECT_EQ(ReplayWith(2)->run.reads_that_differ, 1);
}

TEST_F(SessionTest, FreedMemoryIsGoneAndComesBackInReplays) {
  std::string add = AddText();
  add.insert(add.size() - 1, R"(,"free":[2])");
  const auto result = RunForward({EmptyText(4), KernelText("add"), add});
  ASSERT_TRUE(result.ok()) << result.status();
  const auto replay = ReplayWith(1);
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_TRUE(replay->output.host.equal(result->outputs[0].host));
  EXPECT_FALSE(RunForward({EmptyText(4), KernelText("add"), add, AddText()}).ok());
}

}  // namespace
}  // namespace tritonrl::device
