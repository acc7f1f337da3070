// Honest programs have no finding; cheats that the source shows for certain have one, with rule,
// line and name. What the source does not show for certain is left to the run.
#include "verify/linter/linter.h"

#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "verify/linter/testdata_reader.h"

namespace tritonrl {
namespace {

std::string Describe(const LintResult& result) {
  std::string text;
  for (const LintFinding& f : result.findings)
    absl::StrAppend(&text, "  line ", f.line, " ", LintRuleName(f.rule), " [", f.name, "]\n");
  return text;
}

std::vector<LintCase> Cases(const std::vector<std::string>& files) {
  std::vector<LintCase> all;
  for (const std::string& file : files) {
    absl::StatusOr<std::vector<LintCase>> cases = ReadLintCases(file);
    EXPECT_TRUE(cases.ok()) << cases.status();
    if (cases.ok()) all.insert(all.end(), cases->begin(), cases->end());
  }
  return all;
}

// A program with a kernel, where LINES stand for the module's lines, CLASS for the model's, FORWARD
// for forward's before it launches the kernel; forward takes x and MORE.
std::string Program(const std::string& forward, const std::string& lines = "",
                    const std::string& in_class = "", const std::string& more = "") {
  return absl::StrReplaceAll(R"(import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
LINES
@triton.jit
def kernel(p, q, n, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(q + o, tl.load(p + o, mask=o < n) * 2, mask=o < n)
class ModelNew(nn.Module):
    CLASS
    def forward(self, xMORE):
        FORWARD
        out = torch.empty_like(x)
        kernel[(1,)](x, out, x.numel(), B=64)
        return out
)",
                             {{"LINES", lines},
                              {"CLASS", in_class.empty() ? "pass" : in_class},
                              {"FORWARD", absl::StrReplaceAll(forward, {{"\n", "\n        "}})},
                              {"MORE", more}});
}

std::vector<std::string> Found(const std::string& source) {
  std::vector<std::string> found;
  for (const LintFinding& f : Lint(source).findings)
    found.push_back(absl::StrCat(LintRuleName(f.rule), " ", f.name));
  return found;
}

TEST(LinterTest, AcceptsEveryHonestProgram) {
  const std::vector<LintCase> cases = Cases(
      {"honest.py", "fresh1_honest.py", "fresh2_honest.py", "fresh3_honest.py", "fresh4_honest.py",
       "fresh5_honest.py", "fresh6_honest.py", "followed_honest.py", "ablation_honest.py"});
  EXPECT_GE(cases.size(), 281u);
  std::set<std::string> names;
  for (const LintCase& c : cases) {
    const LintResult result = Lint(c.source);
    EXPECT_TRUE(result.ok()) << c.name << ":\n" << Describe(result);
    EXPECT_TRUE(names.insert(c.name).second) << c.name;
  }
}

TEST(LinterTest, RefusesEveryCheatWithRuleLineAndName) {
  const std::vector<LintCase> cases = Cases({"certain_cheats.py"});
  EXPECT_GE(cases.size(), 70u);
  for (const LintCase& c : cases) {
    const LintResult result = Lint(c.source);
    EXPECT_TRUE(absl::c_any_of(result.findings,
                               [&](const LintFinding& f) {
                                 return LintRuleName(f.rule) == c.rules[0] && f.name == c.found &&
                                        !f.text.empty() &&
                                        (c.line == 0 ? f.line > 0 : f.line == c.line);
                               }))
        << c.name << " should give " << c.rules[0] << " [" << c.found << "] at line " << c.line
        << ":\n"
        << Describe(result);
    const bool syntax =
        c.rules[0] == "no_kernel" || c.rules[0] == "no_model" || c.rules[0] == "parse_error";
    EXPECT_EQ(result.syntax_ok(), !syntax) << c.name;
  }
}

TEST(LinterTest, TorchThatCertainlyRunsIsFound) {
  const std::string layer = "def __init__(self):\n        super().__init__()\n        self.fc = ";
  EXPECT_EQ(Found(Program("")), std::vector<std::string>());
  for (const auto& [source, name] : std::vector<std::pair<std::string, std::string>>{
           {Program("y = torch.relu(x)"), "torch.relu"},
           {Program("x = x.contiguous().view(-1) * self.scale\nreturn F.softmax(x, -1)"),
            "torch.nn.functional.softmax"},
           {Program("if x.dim() > 2:\n    y = 1\ny = nn.functional.linear(x, self.w)"),
            "torch.nn.functional.linear"},
           {Program("with torch.no_grad():\n    y = x @ w", "", "", ", w"), "@"},
           {Program("assert x.is_cuda\ny = w.t().matmul(x)", "", "", ", w"), "matmul"},
           {Program("if torch.exp(x).sum() > 0:\n    return x"), "torch.exp"},
           {Program("from torch import relu\ny = relu(input=x)"), "torch.relu"},
           {Program("y = self.fc(x)", "", layer + "nn.Linear(4, 4)"), "torch.nn.Linear"},
           {Program("def grid(meta): return (1,)\ny = torch.bmm(x, w)", "", "", ", w"),
            "torch.bmm"}}) {
    EXPECT_EQ(Found(source), std::vector<std::string>{"torch_compute " + name}) << source;
  }
}

TEST(LinterTest, TorchThatMayNotRunOrMeanTorchIsNoCrime) {
  const std::string layer = "def __init__(self):\n        super().__init__()\n        self.fc = ";
  for (const std::string& source : {
           Program("if not x.is_cuda:\n    return torch.relu(x)"),
           Program("if x.is_cuda:\n    return launch(x)\nreturn torch.relu(x)"),
           Program("for i in range(2):\n    return launch(x)\ny = torch.relu(x)"),
           Program("try:\n    return launch(x)\nexcept Exception:\n    y = torch.relu(x)"),
           Program("f = lambda: torch.relu(x)\ng = [torch.relu(x) for _ in ()]"),
           Program("y = torch.relu(x) if x.numel() == 1 else None"),
           Program("y = x.is_cpu and torch.relu(x)\nz = 1 < 0 < x.relu()"),
           Program("def plain():\n    return torch.relu(x)"),
           Program("x = x[:4]\ny = torch.exp(x)"),              // a few elements
           Program("y = torch.sigmoid(w)", "", "", ", w"),      // w may be a number
           Program("y = x.sum() + x.max() + x.cumsum(0)[-1]"),  // small tables
           Program("y = F.pad(x, (0, 1))"),
           Program("F = self.F\ny = F.relu(x)"),
           Program("y = torch.relu(x)", "torch.relu = launch"),
           Program("y = torch.relu(x)", "import torch as t\nsetattr(t, 'relu', launch)"),
           Program("y = torch.relu(x)", "", "def __call__(self, x): return launch(x)"),
           Program("y = torch.relu(x)", "def other(m): m.forward = launch"),
           Program("y = torch.relu(x)", "class ModelNew: pass"),
           Program("(x := x[:1])\ny = torch.relu(x)"),
           Program("yield torch.relu(x)"),
           Program("y = self.fc(x)", "", layer + "nn.Linear(4, 4)\n        self.fc = Mine()"),
           Program("y = self.fc(x)", "class nn: Linear = None", layer + "nn.Linear(4, 4)"),
           Program("y = self.fc(x)", "def fc(self, x): return x", layer + "nn.Linear(4, 4)"),
       }) {
    EXPECT_EQ(Found(source), std::vector<std::string>()) << source;
  }
}

TEST(LinterTest, KernelsAndModelsThatMayBeFoundInOtherWaysAreLeftToTheRun) {
  const std::string source = Program("");
  const auto with = [&](const std::string& from, const std::string& to) {
    return Found(absl::StrReplaceAll(source, {{from, to}}));
  };
  const std::string launch = "kernel[(1,)](x, out, x.numel(), B=64)";
  const std::vector<std::string> none;
  EXPECT_EQ(with(launch, "pass"), std::vector<std::string>{"kernel_not_used kernel"});
  const std::string helper = "def helper(x, out):\n    " + launch + "\n";
  EXPECT_EQ(with(launch, "pass\n" + helper), std::vector<std::string>{"kernel_not_used kernel"});
  EXPECT_EQ(with(launch, "helper(x, out)\n        return out\n" + helper), none);
  EXPECT_EQ(with(launch, "pass\n@register\n" + helper), none);
  EXPECT_EQ(with(launch, "getattr(self, 'ker' + 'nel')"), none);
  EXPECT_EQ(with(launch, "pass\nclass Op(metaclass=Table):\n    def f(self): " + launch + "\n"),
            none);
  EXPECT_EQ(with("@triton.jit\n", "@keep\n@triton.jit\n"), none);
  EXPECT_EQ(with("@triton.jit\n", ""), std::vector<std::string>{"no_kernel triton.jit"});
  EXPECT_EQ(with("@triton.jit\n", "@getattr(triton, 'jit')\n"), none);
  EXPECT_EQ(with("import triton\n", "from triton import jit as tjit\n@tjit\ndef k(): pass\n"),
            none);
  EXPECT_EQ(with("forward", "backward"), std::vector<std::string>{"no_model ModelNew"});
  EXPECT_EQ(Found(absl::StrReplaceAll(source, {{"forward", "run"}, {"nn.Module", "Base"}})), none);
  EXPECT_EQ(with("ModelNew", "Model"), std::vector<std::string>{"no_model ModelNew"});
  EXPECT_EQ(Found(absl::StrReplaceAll(source, {{"class ModelNew", "class Model"}}) +
                  "ModelNew = Model\n"),
            none);
}

TEST(LinterTest, ForbiddenModulesAreThoseThatAreUsed) {
  EXPECT_EQ(Found(Program("", "import ctypes, subprocess, os, pickle, inspect, gc, io")),
            std::vector<std::string>());
  EXPECT_EQ(Found(Program("", "import ctypes\nif __name__ == '__main__':\n    ctypes.CDLL('x')")),
            std::vector<std::string>());
  EXPECT_EQ(Found(Program("", "import importlib\nc = importlib.import_module('ctypes')")),
            std::vector<std::string>{"forbidden ctypes"});
  EXPECT_EQ(Found(Program("y = pickle.loads(b'')", "import pickle, sys\nsys.setrecursionlimit(9)")),
            std::vector<std::string>());
  EXPECT_EQ(Found(Program("self.eval()\nexec('y = 1')")),
            std::vector<std::string>{"forbidden exec"});
}

TEST(LinterTest, TextThatIsNoProgramIsRefused) {
  const auto rule = [](const std::string& source) {
    const LintResult result = Lint(source);
    return result.ok() ? "" : std::string(LintRuleName(result.findings[0].rule));
  };
  EXPECT_EQ(rule(""), "no_code");
  EXPECT_EQ(rule(" \n\t"), "no_code");
  EXPECT_EQ(rule(absl::StrCat("x = ", std::string(5000, '('), "1", std::string(5000, ')'))),
            "too_large");
  EXPECT_EQ(rule(std::string(300 << 10, '#')), "too_large");
  std::string blocks;
  for (int i = 0; i < 190; ++i) absl::StrAppend(&blocks, std::string(i, ' '), "if x:\n");
  EXPECT_EQ(rule(blocks + std::string(190, ' ') + "pass\n"), "too_large");
  EXPECT_EQ(rule(Program("s = 'a" + std::string(1, '\0') + "b'")), "parse_error");
  EXPECT_EQ(rule(absl::StrCat("# coding: latin-1\n", Program(""))), "forbidden");
  EXPECT_EQ(rule(absl::StrCat("# coding: utf-8\n", Program(""))), "");
  EXPECT_EQ(rule(absl::StrCat("\xef\xbb\xbf", Program(""))), "");
  EXPECT_EQ(rule(Program("y = 1  # \rimport ctypes")), "forbidden");
  EXPECT_EQ(rule(absl::StrReplaceAll(Program(""), {{"\n", "\r\n"}})), "");
}

TEST(LinterTest, CutOffProgramsNeverCrash) {
  const std::vector<LintCase> cases = Cases({"honest.py"});
  const std::string& source = cases.at(3).source;
  for (size_t length = 0; length < source.size(); length += 7)
    Lint(absl::string_view(source).substr(0, length));
  EXPECT_TRUE(Lint(source).ok());
}

}  // namespace
}  // namespace tritonrl
