#include "tasks/prompt_format.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/mini_prompt.h"

namespace tritonrl {

namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

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
  EXPECT_EQ(MiniPrompt(task.source),
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
  EXPECT_EQ(MiniPrompt(task.source),
            "N = 8\nself.c = c\nif self.c > 0:\n    x = x * \"# no comment\"\nreturn x\n"
            "A = torch.rand(N, N)\n[A]\n");
}

// As the import of KernelBook writes it.
TEST(MiniPromptTest, FindsTheModelThatTheLastLineNames) {
  EXPECT_EQ(MiniPrompt(R"(# KernelBook: uuid 7, licence MIT
from _paritybench_helpers import _mock_config
import torch
import torch.nn as nn


class Scale(nn.Module):

    def __init__(self, cfg):
        super().__init__()
        self.k = cfg.K

    def forward(self, x):
        return torch.sin(x) * self.k


def get_inputs():
    return [torch.rand([4, 4])]


def get_init_inputs():
    return [[], {"cfg": _mock_config(K=4)}]


Model = Scale
)"),
            "self.k = cfg.K\nreturn torch.sin(x) * self.k\n[torch.rand([4, 4])]\n");
}

TEST(MiniPromptTest, BrokenSourceStillGivesText) {
  EXPECT_EQ(MiniPrompt(""), "");
  MiniPrompt("class Model(:\n  def");
}

TEST(PromptFormatTest, TheMiniPolicysPromptsAreUnchanged) {
  const Task task = MakeTask("class Model:\n    def forward(self, x):\n        return x + 1\n");
  EXPECT_EQ(PromptFormat().Build(task), MiniPrompt(task.source));
  EXPECT_EQ(PromptFormat::FromName("mini")->Build(task), "return x + 1\n");
  EXPECT_EQ(PromptFormat::Mini().FixedText(), "");
  EXPECT_EQ(PromptFormat::Mini().name(), "mini");
}

TEST(PromptFormatTest, PlaceholdersAndQuotedWords) {
  const auto format = PromptFormat::Parse(
      "Task {name} of level {level}:\n{task}\nd = {'a': 1, \"b\": {}}; f\"{{x}} {y1}\" {{{task}\n "
      "\n",
      "p.txt");
  ASSERT_TRUE(format.ok()) << format.status();
  Task task = MakeTask("x = '{task} {unknown}'\n\n");
  task.id = "level2/3_a";
  task.level = 2;
  EXPECT_EQ(format->Build(task),
            "Task level2/3_a of level 2:\nx = '{task} {unknown}'\n"
            "d = {'a': 1, \"b\": {}}; f\"{x} {y1}\" {{x = '{task} {unknown}'\n");
  EXPECT_EQ(format->FixedText(), "Task  of level :\n\nd = {'a': 1, \"b\": {}}; f\"{x} {y1}\" {{\n");
  EXPECT_EQ(format->name(), "p.txt");
}

TEST(PromptFormatTest, BadFilesAreNamedWithTheirLine) {
  const auto error = [](absl::string_view text) {
    return Message(PromptFormat::Parse(text, "my.txt").status());
  };
  EXPECT_EQ(
      error("Solve\n\n{task}\nwith {tools}\n"),
      "my.txt, line 4: the placeholder {tools} is unknown; use {task}, {name} and {level}, or "
      "write {{tools}} for the text");
  EXPECT_EQ(error("Solve it\nplease {{task}}\n"),
            "my.txt: none of its 2 lines has the placeholder {task}; put it where the task's "
            "program belongs");
  EXPECT_THAT(error(""), HasSubstr("none of its 0 lines has"));
  EXPECT_EQ(error("{task} \xff"), "my.txt is not UTF-8 text");
  EXPECT_THAT(Message(PromptFormat::Load("/no/such.txt").status()), HasSubstr("/no/such.txt"));
}

TEST(PromptFormatTest, NamesAndPaths) {
  const std::string dir = MakeTempDirectory("prompt").value();
  ASSERT_TRUE(WriteFileAtomic(dir + "/mine.txt", "Solve\n{task}").ok());
  const auto mine = PromptFormat::FromName(dir + "/mine.txt");
  ASSERT_TRUE(mine.ok()) << mine.status();
  EXPECT_EQ(mine->Build(MakeTask("T = 1\n")), "Solve\nT = 1\n");
  EXPECT_THAT(Message(PromptFormat::FromName("evil").status()),
              HasSubstr("the prompt \"evil\" is neither mini, train nor eval"));
  EXPECT_TRUE(RemoveTree(dir).ok());
}

TEST(PromptFormatTest, LengthsOfPrompts) {
  const PromptFormat format = PromptFormat::Parse("Solve:\n{task}", "p.txt").value();
  const std::vector<Task> tasks = {MakeTask("T = 1\n"), MakeTask("LONG = 123\n")};
  const auto bytes = [](const std::string& text) { return static_cast<int64_t>(text.size()); };
  EXPECT_EQ(PromptLengths(format, tasks, bytes),
            "p.txt, 8 tokens of fixed text; the longest of 2 prompts has 18 tokens");
  EXPECT_EQ(EstimatedPromptLengths(format, tasks),
            "p.txt, 2 tokens of fixed text; the longest of 2 prompts has 4 tokens (estimated: one "
            "for each 4 bytes)");
}

// More tokens than any tokenizer of a language model makes: a word is a token for each five
// letters, and any other character except a space is one.
int UpperBoundOfTokens(absl::string_view text) {
  int tokens = 0, letters = 0;
  for (const char c : absl::StrCat(text, " ")) {
    if (absl::ascii_isalpha(c)) {
      ++letters;
      continue;
    }
    tokens += (letters + 4) / 5 + (c == ' ' ? 0 : 1);
    letters = 0;
  }
  return tokens;
}

TEST(OwnPromptsTest, TheTrainingPromptIsShortAndHasNoExample) {
  const PromptFormat format = PromptFormat::FromName("train").value();
  EXPECT_EQ(format.name(), "tasks/prompts/train.txt");
  EXPECT_EQ(PromptFormat::FromName("full")->FixedText(), format.FixedText());
  EXPECT_LE(UpperBoundOfTokens(format.FixedText()), 300);
  const std::string prompt = format.Build(MakeTask("TASK = 1\n\n"));
  EXPECT_THAT(prompt, HasSubstr("\n```python\nTASK = 1\n```\n"));
  EXPECT_THAT(prompt, HasSubstr("ModelNew"));
  EXPECT_THAT(prompt, Not(HasSubstr("def ")));  // no program but the task
  EXPECT_THAT(prompt, EndsWith("\n"));
}

TEST(OwnPromptsTest, TheEvaluationPromptHasOneExample) {
  const PromptFormat format = PromptFormat::FromName("eval").value();
  EXPECT_EQ(format.name(), "tasks/prompts/eval_one_shot.txt");
  const std::string prompt = format.Build(MakeTask("TASK = 1\n"));
  EXPECT_THAT(prompt, HasSubstr("def add_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):"));
  EXPECT_THAT(prompt, HasSubstr("you may leave others unchanged"));
  EXPECT_EQ(prompt.find("@triton.jit"), prompt.rfind("@triton.jit"));
  EXPECT_THAT(prompt, HasSubstr("\n```python\nTASK = 1\n```\n"));
}

}  // namespace

}  // namespace tritonrl
