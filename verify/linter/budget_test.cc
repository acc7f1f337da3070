// Programs that cause much work with little source are refused within the budget of work, for that
// reason. Before all work counted each of them took seconds to hours, gigabytes, or the stack.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "verify/linter/linter.h"

namespace tritonrl {
namespace {

constexpr char kHead[] = R"(import dataclasses, functools, types
import torch, triton
import triton.language as tl
@triton.jit
def k(p, q, n, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(q + o, tl.load(p + o) * 2)
)";

constexpr char kModel[] = R"(
class ModelNew(torch.nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        )";

std::string Times(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) absl::StrAppend(&all, text);
  return all;
}

// `text` with each "#" replaced by 0, 1, ...
std::string Numbered(int count, const std::string& text) {
  std::vector<std::string> parts;
  for (int i = 0; i < count; ++i) {
    std::string part;
    for (char c : text)
      c == '#' ? absl::StrAppend(&part, i) : absl::StrAppend(&part, std::string(1, c));
    parts.push_back(part);
  }
  return absl::StrJoin(parts, "");
}

// A function `g` that runs the function `f0` 2^`levels` times.
std::string Doublings(int levels) {
  std::string text;
  for (int i = 1; i <= levels; ++i)
    absl::StrAppend(&text, "def f", i, "(x):\n  f", i - 1, "(x)\n  return f", i - 1, "(x)\n");
  return absl::StrCat(text, "g = f", levels, "\n");
}

// A program with `module` before the model and `forward` in it, statements apart by semicolons.
std::string Program(const std::string& module, const std::string& forward) {
  return absl::StrCat(kHead, module, kModel, forward,
                      "\n        k[(1,)](x, o, 1, B=64)\n        return o\n");
}

std::string InForward(const std::string& statements) { return Program("", statements); }

std::vector<std::string> UnresolvedNames(const std::string& source) {
  std::vector<std::string> names;
  for (const LintFinding& f : Lint(source).findings) {
    if (f.rule == LintRule::kUnresolved) names.push_back(f.name);
  }
  return names;
}

// Refused for having used up the budget.
void ExpectTooMuch(const std::string& source) {
  const std::vector<std::string> names = UnresolvedNames(source);
  EXPECT_NE(std::find(names.begin(), names.end(), "program"), names.end())
      << absl::StrJoin(names, ", ") << " in\n"
      << source.substr(sizeof(kHead), 500) << "\n...\n"
      << source.substr(source.size() - 300);
}

void ExpectTooDeep(const std::string& source) {
  const std::vector<std::string> names = UnresolvedNames(source);
  EXPECT_NE(std::find(names.begin(), names.end(), "nesting"), names.end())
      << absl::StrJoin(names, ", ") << " in\n"
      << source.substr(sizeof(kHead), 500) << "\n...\n"
      << source.substr(source.size() - 300);
}

constexpr char kLine[] = "\n        ";

TEST(BudgetTest, ContainersThatDouble) {
  ExpectTooMuch(InForward("l = [1]" + Times(40, absl::StrCat(kLine, "l = l + l"))));
  ExpectTooMuch(InForward("l = [1]" + Times(40, absl::StrCat(kLine, "l.extend(l)"))));
  ExpectTooMuch(InForward("d = {'a': 1}" + Times(40, absl::StrCat(kLine, "d = {**d, **d}"))));
}

TEST(BudgetTest, CopiesOfWhatIsLarge) {
  const std::string large = "l = [1]" + Times(15, absl::StrCat(kLine, "l.extend(l)"));
  ExpectTooMuch(InForward(large + Times(2000, absl::StrCat(kLine, "l[:]"))));
  ExpectTooMuch(InForward(large + Times(2000, absl::StrCat(kLine, "print(l)"))));
  ExpectTooMuch(InForward(large + Times(2000, absl::StrCat(kLine, "id(l)"))));
  ExpectTooMuch(InForward(large + absl::StrCat(kLine, "while n:") +
                          Times(2000, absl::StrCat(kLine, "  self.x = l"))));
  const std::string text =
      "s = '" + Times(3000, "a") + "'" + Times(4, absl::StrCat(kLine, "s = s + s"));
  ExpectTooMuch(InForward(text + Times(9000, absl::StrCat(kLine, "s + 'a'"))));
  ExpectTooMuch(InForward("a = torch" + Times(14000, absl::StrCat(kLine, "a = a.b"))));
}

TEST(BudgetTest, ManyNames) {
  ExpectTooMuch(Program(Numbered(8000, "v# = 1\n") + Times(9000, "if n > N: pass\n"), "pass"));
  ExpectTooMuch(Program("class A:\n" + Numbered(8000, "  v# = 1\n") + "a = A()\n",
                        "pass" + Times(8000, absl::StrCat(kLine, "a.v7999"))));
  ExpectTooMuch(Program("class A:\n" + Numbered(8000, "  v# = 1\n") + "a = A()\n",
                        "pass" + Times(6000, absl::StrCat(kLine, "getattr(a, n)"))));
  ExpectTooMuch(InForward("d = {}" + Numbered(12000, absl::StrCat(kLine, "d[#] = 1"))));
  const std::string names = Numbered(1500, "a#=1, ");
  ExpectTooMuch(Program(absl::StrCat("d = dict(", names, ")\ndef f(", names, "**kw): pass\n") +
                            Times(8000, "f(**d)\n"),
                        "pass"));
}

TEST(BudgetTest, CallsThatDouble) {
  ExpectTooMuch(Program(
      "def f0(x): return '''" + Times(1000, Times(99, "a") + "\n") + "'''\n" + Doublings(25),
      "g(x)"));
  ExpectTooMuch(
      Program("def f0(x):\n  return x\n" + Times(12000, "  a + b + c\n") + Doublings(25), "g(x)"));
  ExpectTooMuch(Program("@dataclasses.dataclass\nclass D:\n" + Numbered(6000, "  v#: int = 1\n") +
                            "def f0(x): return D(x)\n" + Doublings(25),
                        "g(x)"));
  ExpectTooMuch(Program(
      "class A:\n" + Numbered(4000, "  v# = 1\n") + "def f0(x): return A()\n" + Doublings(25),
      "g(x)"));
}

TEST(BudgetTest, ManyTensors) {
  ExpectTooMuch(InForward("l = []" + Times(8000, absl::StrCat(kLine, "l.append(torch.cat(l))"))));
  ExpectTooMuch(InForward("l = []" + Times(2000, absl::StrCat(kLine, "l.append(torch.empty(3))")) +
                          Times(5000, absl::StrCat(kLine, "if x.shape[0] == 3: return l"))));
}

TEST(BudgetTest, ChainsOfClasses) {
  for (const std::string& classes :
       {"class A: pass\n" + Times(5000, "class A(A): pass\n"),
        Numbered(300, "class B#: pass\n") + "class A(" + Numbered(300, "B#, ") + "): pass\n"}) {
    const std::vector<std::string> names = UnresolvedNames(Program(classes, "pass"));
    EXPECT_NE(std::find(names.begin(), names.end(), "A"), names.end()) << classes.substr(0, 100);
  }
  // A few are as good as none, under diamonds too.
  std::string diamond = "class A0: pass\n";
  for (int i = 0; i < 40; ++i)
    absl::StrAppend(&diamond, "class A", i + 1, "(A", i, ", A", i, "): pass\n");
  EXPECT_TRUE(Lint(Program(diamond, "A40()")).ok());
}

TEST(BudgetTest, NestingWithoutNestedSource) {
  ExpectTooDeep(Program("f = len\n" + Times(9000, "f = functools.partial(f)\n"), "f(3)"));
  ExpectTooDeep(Program("def f(*a): pass\n" + Times(9000, "f = types.MethodType(f, 1)\n"), "f()"));
  ExpectTooDeep(InForward("m = torch.nn.Identity()" +
                          Times(6000, absl::StrCat(kLine, "m = torch.nn.Sequential(m)")) +
                          absl::StrCat(kLine, "m(x)")));
  ExpectTooDeep(
      Program("class A:\n  def __iter__(self): return self if self.n else [1]\n", "list(A())"));
  ExpectTooDeep(Program("if n: pass\n" + Times(9000, "elif n: pass\n"), "pass"));
  std::string calls = "def f0(x): return x\n";
  for (int i = 1; i < 58; ++i)
    absl::StrAppend(&calls, "def f", i, "(x): return ", Times(90, "("), "f", i - 1, "(x)",
                    Times(90, ")"), "\n");
  ExpectTooDeep(Program(calls, "f57(x)"));
}

TEST(BudgetTest, WhatHoldsItself) {
  const std::string self = absl::StrCat("b = []", kLine, "b.append(b)", kLine);
  EXPECT_TRUE(Lint(InForward(self + "if b == 1: pass")).ok());
  EXPECT_TRUE(Lint(InForward(self + "triton.Config(b)")).ok());
  EXPECT_TRUE(Lint(InForward("b = [x]" + Times(9000, absl::StrCat(kLine, "b = [b]")) +
                             absl::StrCat(kLine, "id(b)")))
                  .ok());
}

// Names that look like mangled ones are compared with those of all classes.
TEST(BudgetTest, ManyClassesAndUnderscores) {
  const std::string source =
      Program(Numbered(6000, "class A#: pass\n") + Times(20000, "_b;_c\n"), "pass");
  EXPECT_FALSE(Lint(source).ok());
  EXPECT_EQ(Lint(Program("class A: pass\n", "_A__b = 3")).findings.at(0).rule,
            LintRule::kForbidden);
}

}  // namespace
}  // namespace tritonrl
