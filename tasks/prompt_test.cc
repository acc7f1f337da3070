#include "tasks/prompt.h"

#include <string>

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
}  // namespace tritonrl
