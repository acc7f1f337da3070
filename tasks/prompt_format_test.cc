#include "tasks/prompt_format.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tritonrl {

namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Task MakeTask(const std::string& source) {
  Task task;
  task.id = "t";
  task.source = source;
  return task;
}

TEST(MiniPromptTest, KeepsForwardAndInputsOnly) {
  const Task task = MakeTask(R"(import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Doc."""

    def forward(self, x, y):
        x = x * 1.5
        x = F.gelu(x)
        return x + y


def get_inputs():
    return [torch.randn(16, 200), torch.randn(16, 200)]


def get_init_inputs():
    return []
)");
  EXPECT_EQ(BuildPrompt(task, PromptStyle::kMini),
            "x = x * 1.5\nx = F.gelu(x)\nreturn x + y\n"
            "[torch.randn(16, 200), torch.randn(16, 200)]\n");
}

TEST(MiniPromptTest, ReducesAnyKernelBenchFile) {
  const Task task = MakeTask(R"('''Doc.'''
import torch
from torch import nn

N = 8  # rows

class Model(nn.Module):
    """Doc."""
    def __init__(self, c):
        super(Model, self).__init__()
        self.c = c  # a constant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """
        Long documentation.
        """
        # A comment.
        if self.c > 0:

            x = x * "# no comment"
        return x

def get_inputs():
    A = torch.rand(N, N)
    return [A]

def get_init_inputs():
    return [3]
)");
  EXPECT_EQ(BuildPrompt(task, PromptStyle::kMini),
            "N = 8\nself.c = c\nif self.c > 0:\n    x = x * \"# no comment\"\nreturn x\n"
            "A = torch.rand(N, N)\n[A]\n");
}

TEST(MiniPromptTest, BrokenSourceStillGivesText) {
  EXPECT_EQ(BuildPrompt(MakeTask(""), PromptStyle::kMini), "");
  BuildPrompt(MakeTask("class Model(:\n  def"), PromptStyle::kMini);
}

TEST(FullPromptTest, HoldsRulesExampleAndTask) {
  const std::string prompt = BuildPrompt(MakeTask("TASK = 1\n\n"), PromptStyle::kFull);
  EXPECT_THAT(prompt, StartsWith("Rewrite the PyTorch program"));
  EXPECT_THAT(prompt, HasSubstr("exactly one code block"));
  EXPECT_THAT(prompt, HasSubstr("</think>\n```python\nimport torch\n"));
  EXPECT_THAT(prompt, EndsWith("Now the program to rewrite:\n```python\nTASK = 1\n```\n"));
}

TEST(ParsePromptStyleTest, NamesAndErrors) {
  EXPECT_EQ(*ParsePromptStyle("mini"), PromptStyle::kMini);
  EXPECT_EQ(*ParsePromptStyle("full"), PromptStyle::kFull);
  EXPECT_THAT(std::string(ParsePromptStyle("Mini").status().message()), HasSubstr("\"Mini\""));
}

}  // namespace

namespace {

constexpr char kGood[] =
    "<think>\nfuse a b in one kernel\n</think>\n```python\nx = 1\ny = 2\n```\n";

TEST(SplitResponseTextTest, WellFormed) {
  const SplitResponse split = SplitResponseText(kGood);
  EXPECT_EQ(split.shape, ResponseShape::kOk);
  EXPECT_TRUE(split.valid());
  EXPECT_EQ(split.plan, "fuse a b in one kernel");
  EXPECT_EQ(split.code, "x = 1\ny = 2\n");
}

struct ShapeCase {
  const char* name;
  const char* text;
  bool truncated;
  ResponseShape shape;
  const char* plan;
  const char* code;
};

class ShapeTest : public testing::TestWithParam<ShapeCase> {};

TEST_P(ShapeTest, HasDefinedBehaviour) {
  const ShapeCase& c = GetParam();
  const SplitResponse split = SplitResponseText(c.text, c.truncated);
  EXPECT_EQ(split.shape, c.shape) << ResponseShapeName(split.shape);
  EXPECT_EQ(split.plan, c.plan);
  EXPECT_EQ(split.code, c.code);
  EXPECT_EQ(split.valid(), c.shape == ResponseShape::kOk);
}

using S = ResponseShape;
INSTANTIATE_TEST_SUITE_P(
    All, ShapeTest,
    testing::Values(
        ShapeCase{"empty", "", false, S::kEmpty, "", ""},
        ShapeCase{"blank", " \n\t\n", false, S::kEmpty, "", ""},
        ShapeCase{"blank_cut", " \n", true, S::kTruncated, "", ""},
        ShapeCase{"open_tag_in_the_prompt", "p</think>\n```\nx\n```", false, S::kOk, "p", "x\n"},
        ShapeCase{"empty_plan", "<think></think>```py\nx\n```", false, S::kOk, "", "x\n"},
        ShapeCase{"end_of_text_after_fence", "<think>p</think>\n```python\nx\n```<|endoftext|>",
                  false, S::kOk, "p", "x\n"},
        ShapeCase{"complete_at_the_limit", "<think>p</think>\n```python\nx\n```", true, S::kOk, "p",
                  "x\n"},
        ShapeCase{"text_around", "<think>p</think>\nHere:\n```Python\nx\n```\nDone.", false, S::kOk,
                  "p", "x\n"},
        ShapeCase{"windows_lines", "<think>p</think>\r\n```python\r\nx\r\n```\r\n", false, S::kOk,
                  "p", "x\r\n"},
        ShapeCase{"fence_in_plan", "<think>try\n```python\nbad\n```\n</think>\n```python\nx\n```\n",
                  false, S::kOk, "try\n```python\nbad\n```", "x\n"},
        ShapeCase{"other_language", "<think>p</think>\n```bash\nls\n```\n```python\nx\n```\n",
                  false, S::kOk, "p", "x\n"},
        ShapeCase{"close_tag_inside_code", "<think>p</think>\n```python\n# </think>\n```\n", false,
                  S::kOk, "p", "# </think>\n"},
        ShapeCase{"indented_fence_is_code", "<think>p</think>\n```\nd = '''\n    ```\n'''\n```\n",
                  false, S::kOk, "p", "d = '''\n    ```\n'''\n"},
        ShapeCase{"longer_fence", "<think>p</think>\n````\n```\n````\n", false, S::kOk, "p",
                  "```\n"},
        ShapeCase{"no_close", "<think>p\n```python\nx\n```\n", false, S::kNoThinkClose,
                  "p\n```python\nx\n```", ""},
        ShapeCase{"no_tags", "```python\nx\n```\n", false, S::kNoThinkClose, "```python\nx\n```",
                  ""},
        ShapeCase{"cut_in_plan", "<think>p", true, S::kTruncated, "p", ""},
        ShapeCase{"cut_before_code", "<think>p</think>\nSo", true, S::kTruncated, "p", ""},
        ShapeCase{"cut_in_code", "<think>p</think>\n```python\nx = ", true, S::kTruncated, "p",
                  "x = "},
        ShapeCase{"unclosed", "<think>p</think>\n```python\nx = 1\n", false, S::kUnclosedCode, "p",
                  "x = 1\n"},
        ShapeCase{"no_code", "<think>p</think>\nI cannot.", false, S::kNoCode, "p", ""},
        ShapeCase{"empty_code", "<think>p</think>\n```python\n \n```\n", false, S::kNoCode, "p",
                  ""},
        ShapeCase{"inline_ticks", "<think>p</think>\n```x = 1```\n", false, S::kNoCode, "p", ""},
        ShapeCase{"two_blocks", "<think>p</think>\n```python\nx\n```\n```python\ny\n```\n", false,
                  S::kTwoCodeBlocks, "p", "y\n"},
        ShapeCase{"second_block_cut", "<think>p</think>\n```python\nx\n```\n```python\ny", true,
                  S::kTruncated, "p", "y"},
        ShapeCase{"repeated_close", "<think>p</think> q </think>\n```python\nx\n```\n", false,
                  S::kRepeatedThink, "p", "x\n"},
        ShapeCase{"garbage", "\xff\xfe</think>```\n\xc3(\n```", false, S::kOk, "\xff\xfe",
                  "\xc3(\n"}),
    [](const testing::TestParamInfo<ShapeCase>& info) { return std::string(info.param.name); });

// Tokens: 1 = <think>, 2 = </think>, 9 = end of text; all others are ordinary text.
TEST(SplitTokensTest, PlanEndsWithTheCloseToken) {
  const std::vector<int32_t> tokens = {1, 5, 6, 2, 7, 8, 9};
  const TokenSplit split = SplitTokens(tokens, {{2}});
  EXPECT_TRUE(split.has_think_close);
  EXPECT_EQ(split.plan_end, 4);
}

TEST(SplitTokensTest, MalformedShapes) {
  const TokenSplitIds ids = {{2}};
  EXPECT_EQ(SplitTokens({}, ids).plan_end, 0);            // empty
  EXPECT_EQ(SplitTokens({1, 5, 6, 9}, ids).plan_end, 4);  // no </think>: all plan
  EXPECT_FALSE(SplitTokens({1, 5, 6, 9}, ids).has_think_close);
  EXPECT_EQ(SplitTokens({1, 5, 6}, ids).plan_end, 3);  // truncated in the plan
  EXPECT_EQ(SplitTokens({1, 5, 2}, ids).plan_end, 3);  // truncated after </think>
  EXPECT_TRUE(SplitTokens({1, 5, 2}, ids).has_think_close);
  EXPECT_EQ(SplitTokens({1, 2, 5, 2, 7}, ids).plan_end, 2);        // two </think>: the first counts
  EXPECT_EQ(SplitTokens({2, 7, 7}, ids).plan_end, 1);              // empty plan
  EXPECT_EQ(SplitTokens({1, 5, 2}, TokenSplitIds()).plan_end, 3);  // no ids: all plan
}

TEST(SplitTokensTest, CloseSpelledBySeveralTokens) {
  const TokenSplitIds ids = {{4, 3, 5}};
  EXPECT_EQ(SplitTokens({1, 4, 3, 8, 4, 3, 5, 7}, ids).plan_end, 7);
  EXPECT_EQ(SplitTokens({1, 4, 4, 3, 5}, ids).plan_end, 5);
  EXPECT_FALSE(SplitTokens({1, 4, 3}, ids).has_think_close);  // truncated in </think>
}

TEST(ClassifyPlanTest, Kinds) {
  EXPECT_EQ(ClassifyPlan("fuse mul gelu in one kernel, block 256"), PlanKind::kFused);
  EXPECT_EQ(ClassifyPlan("\ntwo kernels: mul then gelu, block 256"), PlanKind::kSplit);
  EXPECT_EQ(ClassifyPlan("three kernels: mul then gelu then relu, block 256"), PlanKind::kSplit);
  EXPECT_EQ(ClassifyPlan("one kernel for gelu, block 256"), PlanKind::kSingle);
  EXPECT_EQ(ClassifyPlan(""), PlanKind::kOther);
  EXPECT_EQ(ClassifyPlan("fused"), PlanKind::kOther);
}

}  // namespace

}  // namespace tritonrl
