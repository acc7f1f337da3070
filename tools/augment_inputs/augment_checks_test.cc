// The program augment_inputs: which variants pass the checks in the sandbox.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/endpoint/testing/mock_endpoint.h"
#include "base/file.h"
#include "nlohmann/json.hpp"
#include "tools/augment_inputs/testing/augment_fixture.h"

namespace tritonrl {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

using AugmentChecksTest = AugmentFixture;

// In the form and of the size of KernelBench's tasks: the input has 6 GiB.
constexpr char kSoftmax[] = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super(Model, self).__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)

batch_size = 4096
dim = 393216

def get_inputs():
    x = torch.rand(batch_size, dim)
    return [x]

def get_init_inputs():
    return []
)";

TEST_F(AugmentChecksTest, LimitsOfTheRunHold) {
  MockEndpoint endpoint([](const MockRequest&) {
    return MockReply::Chat(absl::StrCat(Block("[torch.rand(1 << 27, 8)]"),
                                        "```python\ndef get_inputs():\n    while True:\n"
                                        "        pass\n```\n",
                                        Block("[torch.rand(5, 8)]")));
  });
  const CommandResult result =
      Run({"--endpoint=" + endpoint.url(), "--time_limit=20", "--memory_gb=1", "--with_originals"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json summary = Summary();
  EXPECT_EQ(summary["kept"], 1);
  EXPECT_EQ(summary["left_out"], (json{{"out_of_memory", 1}, {"timeout", 1}}));
  EXPECT_TRUE(FileExists(out_ + "/level1/linear.py"));
  EXPECT_THAT(Text("level1/linear_v1.py"), HasSubstr("torch.rand(5, 8)"));
}

TEST_F(AugmentChecksTest, ConstantRandomAndNonFiniteVariantsAreLeftOut) {
  MockEndpoint endpoint([](const MockRequest&) {
    return MockReply::Chat(absl::StrCat(
        Block("[torch.ones(7, 8)]"),
        Block("[torch.rand(6, 8) + int.from_bytes(__import__('os').urandom(3), 'big')]"),
        Block("[torch.rand(9, 8) / 0]"), Block("[torch.rand(5, 8)]")));
  });
  const CommandResult result = Run({"--endpoint=" + endpoint.url()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<json> left_out = Lines("left_out.jsonl");
  ASSERT_EQ(left_out.size(), 3);
  EXPECT_EQ(left_out[0]["reason"],
            "constant_result: the result is constant: get_inputs() gives the same for each seed");
  EXPECT_EQ(left_out[1]["reason"],
            "random_result: get_inputs() gives other inputs for the same seed");
  EXPECT_EQ(left_out[2]["reason"], "not_finite: forward's result holds NaN or infinity");
  EXPECT_EQ(Summary()["kept"], 1);
  EXPECT_THAT(result.out, HasSubstr("left out, not_finite: 1\n"));
}

// A task whose own result is constant is not broken: the variants are checked by themselves.
TEST_F(AugmentChecksTest, AnOriginalWithConstantInputsMayHaveVariants) {
  Add("level1/linear", absl::StrReplaceAll(kLinear, {{"torch.rand(batch", "torch.ones(batch"}}));
  MockEndpoint endpoint(
      [](const MockRequest&) { return MockReply::Chat(Block("[torch.rand(5, 8)]")); });
  const CommandResult result = Run({"--endpoint=" + endpoint.url()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Summary()["broken"], 0);
  EXPECT_EQ(Summary()["kept"], 1);
  EXPECT_EQ(Summary()["originals"], (json{{"constant_result", 1}}));
}

TEST_F(AugmentChecksTest, AnOriginalTooLargeStillHasVariantsOfItsForm) {
  ASSERT_TRUE(RemoveTree(tasks_).ok());
  Add("level1/23_Softmax", kSoftmax);
  MockEndpoint endpoint([](const MockRequest&) {
    return MockReply::Chat(
        absl::StrCat(Block("[torch.rand(2, 3, 4)]"), Block("[torch.rand(64, 1000)]"),
                     Block("[torch.rand(batch_size, dim)]"), Block("[torch.rand(33, 4097)]")));
  });
  const CommandResult result =
      Run({"--endpoint=" + endpoint.url(), "--variants=4", "--rounds=2", "--memory_gb=1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json summary = Summary();
  EXPECT_EQ(summary["broken"], 0);
  EXPECT_EQ(summary["originals"], (json{{"out_of_memory", 1}}));
  EXPECT_EQ(summary["kept"], 2);
  EXPECT_THAT(result.out, HasSubstr("tasks themselves, out_of_memory: 1\n"));
  EXPECT_THAT(Text("level1/23_Softmax_v1.py"), HasSubstr("torch.rand(64, 1000)"));
  EXPECT_THAT(Text("level1/23_Softmax_v2.py"), HasSubstr("torch.rand(33, 4097)"));
  const std::vector<json> left_out = Lines("left_out.jsonl");
  ASSERT_GE(left_out.size(), 3);
  EXPECT_THAT(left_out[0]["reason"].get<std::string>(),
              StartsWith("2 of 4 variants after 2 rounds; 2 left out for other inputs; "));
  EXPECT_THAT(left_out[0]["reason"].get<std::string>(),
              HasSubstr("; the task itself: out_of_memory: "));
  // get_inputs() alone says what the task's inputs are.
  EXPECT_EQ(left_out[1]["reason"],
            "other inputs: input 0 is float32 of 3 dimensions instead of float32 of 2 dimensions");
  EXPECT_THAT(left_out[2]["reason"].get<std::string>(), StartsWith("out_of_memory: "));
  ASSERT_EQ(endpoint.requests(), 2);
  EXPECT_THAT(endpoint.log()[1].prompt,
              HasSubstr("\n- float32[4096, 393216]\n- float32[64, 1000]\n- float32[33, 4097]\n"));
}

}  // namespace
}  // namespace tritonrl
