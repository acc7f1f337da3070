// What a session refuses, and what ends it.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "exec/device/testing/session_fixture.h"

namespace tritonrl::device {
namespace {

TEST_F(SessionTest, ResultsAreBounded) {
  options_.limits.max_output_bytes = 15;
  const auto result = RunHonest();
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted) << result.status();
}

TEST_F(SessionTest, OperatorsThatComputeAreRefusedByName) {
  const auto result = RunForward(
      {EmptyText(4), OperatorText("mm", "",
                                  absl::StrCat(TensorText(2, "float32", "128,128", "0,0"), ",",
                                               TensorText(2, "float32", "128,128", "0,0")))});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(channel_->reply(5)["refused"], "aten::mm computes on 16384 elements");
  ASSERT_EQ(result->counts.refusals.size(), 1u);
  EXPECT_EQ(result->counts.refusals[0].line, 7);
  EXPECT_EQ(result->counts.refusals[0].phase, Phase::kForward);
}

TEST_F(SessionTest, SmallOperatorsHaveABudget) {
  Texts forward = {EmptyText(4)};
  const std::string add =
      OperatorText("add_", "Tensor", absl::StrCat(FloatTensor(2, 4), ",", FloatTensor(1, 4)));
  for (int i = 0; i < 9; ++i) forward.push_back(add);
  ASSERT_TRUE(RunForward(forward).ok());
  EXPECT_EQ(channel_->reply(12)["out"], Json({{"arg", 0}}));  // 64 elements so far
  EXPECT_EQ(channel_->reply(13)["refused"], "aten::add_ computes on 4 elements");
}

TEST_F(SessionTest, ForwardReadsFewElements) {
  const std::string large =
      absl::StrCat(R"({"do":"read","tensor":)", TensorText(2, "float32", "17", "0"), "}");
  ASSERT_TRUE(RunForward({EmptyText(4), large}).ok());
  EXPECT_EQ(channel_->reply(5)["refused"], "forward reads 17 elements back");
}

TEST_F(SessionTest, AfterAWildAccessNothingWorks) {
  const auto result = RunForward(
      {EmptyText(4), KernelText("wild"), AddText(), OperatorText("zero_", "", FloatTensor(3, 4))});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(absl::StrContains(channel_->reply(6)["error"].get<std::string>(), "out of bounds"));
  EXPECT_TRUE(absl::StrContains(channel_->reply(7)["error"].get<std::string>(), "out of bounds"));
  EXPECT_EQ(result->counts.kernel_errors.size(), 1u);
}

TEST_F(SessionTest, HostileMessagesEndTheSession) {
  const std::string ref = FloatTensor(2, 4);
  const std::string texts[] = {
      "",
      "[]",
      "{\"do\":1}",
      "{\"do\":\"unknown\"}",
      "{\"do\":\"begin\"}",
      "{\"do\":\"constructed\",\"state\":[]}",
      "{\"do\":\"op\"}",
      OperatorText("add", "Tensor", FloatTensor(99, 4)),
      OperatorText("add", "Tensor", FloatTensor(2, 5)),
      OperatorText("uniform_", "", ref, R"(["generator",{"generator":5}])"),
      LaunchText(3, ref),
      LaunchText(0, "\"text\""),
      R"({"do":"launch","kernel":0,"grid":[-1],"args":[]})",
      R"({"do":"launch","kernel":0,"grid":[65536,65535,2],"args":[]})",
      R"({"do":"bench","begin":false})",
      R"({"do":"graph","begin":false})",
      R"({"do":"replay","graph":0})",
      R"({"do":"seed","seed":"x"})",
      R"({"do":"generator","free":[77]})",
      OutputText(FloatTensor(3, 400)),
  };
  for (const std::string& text : texts) {
    Texts script = Init();
    script.insert(script.end(), {EmptyText(4), KernelText("add"), text});
    const auto result = RunScript(Script(script));
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument)
        << text << result.status();
    EXPECT_TRUE(absl::StartsWith(result.status().message(), "the candidate's process sent "))
        << text << result.status();
  }
}

TEST_F(SessionTest, LimitsHold) {
  options_.limits.max_forward_commands = 3;
  EXPECT_EQ(RunForward({EmptyText(4), EmptyText(4), EmptyText(4), EmptyText(4)}).status().code(),
            absl::StatusCode::kResourceExhausted);
  options_.limits = SessionLimits();
  options_.limits.max_memory_bytes = 1 << 20;
  ASSERT_TRUE(RunForward({EmptyText(4), EmptyText(1 << 20)}).ok());
  EXPECT_TRUE(absl::StrContains(channel_->reply(5)["error"].get<std::string>(), "out of memory"));
}

TEST_F(SessionTest, WhatIsRecordedAndReturnedIsBounded) {
  std::string many = FloatTensor(2, 4);
  for (int i = 0; i < 999; ++i) absl::StrAppend(&many, ",", FloatTensor(2, 4));
  options_.limits.max_memory_bytes = 1 << 12;
  EXPECT_EQ(RunForward({EmptyText(4)}, "[" + many + "]").status().code(),
            absl::StatusCode::kResourceExhausted);
  options_.limits = SessionLimits();
  options_.limits.max_recorded_values = 1'500;
  const std::string join = OperatorText("cat", "", "[" + many + "]");
  EXPECT_TRUE(RunForward({EmptyText(4), join}).ok());
  EXPECT_EQ(RunForward({EmptyText(4), join, join}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(SessionTest, AnEndlessKernelMeetsTheDeadline) {
  options_.deadline = absl::Now() - absl::Seconds(1);
  EXPECT_EQ(RunHonest().status().code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace tritonrl::device
