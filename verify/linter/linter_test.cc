// Every honest program is accepted; every cheating one is refused with the right rule, line and
// name.
#include "verify/linter/linter.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "verify/linter/testdata_reader.h"

namespace tritonrl {
namespace {

std::string Describe(const LintResult& result) {
  std::string text;
  for (const LintFinding& f : result.findings) {
    absl::StrAppend(&text, "  line ", f.line, " ", LintRuleName(f.rule), " [", f.name, "] ", f.text,
                    "\n");
  }
  return text;
}

// Each file was written as a whole; README.md says which before the analysis was seen to fail on
// it.
std::vector<LintCase> Cases(const std::vector<std::string>& files) {
  std::vector<LintCase> all;
  for (const std::string& file : files) {
    absl::StatusOr<std::vector<LintCase>> cases = ReadLintCases(file);
    EXPECT_TRUE(cases.ok()) << cases.status();
    if (cases.ok()) all.insert(all.end(), cases->begin(), cases->end());
  }
  return all;
}

std::vector<LintCase> Honest() {
  return Cases({"honest.py", "fresh1_honest.py", "fresh2_honest.py", "fresh3_honest.py",
                "fresh4_honest.py", "fresh5_honest.py", "fresh6_honest.py", "followed_honest.py"});
}

std::vector<LintCase> Cheats() {
  return Cases({"cheats.py", "fresh1_cheats.py", "fresh2_cheats.py", "fresh3_cheats.py",
                "fresh4_cheats.py", "fresh5_cheats.py", "fresh6_cheats.py", "followed_cheats.py"});
}

// One line of the matrix: case, layer, rule, line.
void PrintRow(const LintCase& c, const LintResult& result, const LintFinding* finding) {
  std::printf("%-44s %-14s %-16s %s\n", c.name.c_str(),
              result.ok()          ? "accepted"
              : result.syntax_ok() ? "functionality"
                                   : "syntax",
              finding == nullptr ? "-" : std::string(LintRuleName(finding->rule)).c_str(),
              finding == nullptr ? "-" : absl::StrCat(finding->line).c_str());
}

// The finding that a case expects; null when it is not there.
const LintFinding* Expected(const LintCase& c, const LintResult& result) {
  for (const LintFinding& f : result.findings) {
    const bool same_rule = absl::c_linear_search(c.rules, LintRuleName(f.rule));
    const bool same_name = c.found.empty() || f.name == c.found ||
                           (c.found == "numpy" && absl::StartsWith(f.name, "numpy"));
    const bool same_line = c.line == 0 || c.line == f.line;
    if (same_rule && same_name && same_line && f.line > 0 && !f.text.empty()) return &f;
  }
  return nullptr;
}

TEST(LinterTest, AcceptsEveryHonestProgram) {
  const std::vector<LintCase> cases = Honest();
  EXPECT_GE(cases.size(), 150u);
  for (const LintCase& c : cases) {
    const LintResult result = Lint(c.source);
    PrintRow(c, result, result.ok() ? nullptr : &result.findings[0]);
    EXPECT_TRUE(result.ok()) << c.name << ":\n" << Describe(result);
    EXPECT_FALSE(result.launched_kernels.empty()) << c.name;
    EXPECT_EQ(result.launched_kernels.size(), result.launch_lines.size());
  }
}

TEST(LinterTest, RefusesEveryCheatWithRuleLineAndName) {
  const std::vector<LintCase> cases = Cheats();
  EXPECT_GE(cases.size(), 350u);
  for (const LintCase& c : cases) {
    const LintResult result = Lint(c.source);
    const LintFinding* found = Expected(c, result);
    PrintRow(c, result, found);
    EXPECT_NE(found, nullptr) << c.name << " should give " << absl::StrJoin(c.rules, " or ") << " ["
                              << c.found << "] at line " << c.line << ":\n"
                              << Describe(result);
    EXPECT_FALSE(result.ok()) << c.name;
  }
}

TEST(LinterTest, NamesOfCasesAreUnique) {
  std::set<std::string> names;
  for (const auto& cases : {Honest(), Cheats()}) {
    for (const LintCase& c : cases) EXPECT_TRUE(names.insert(c.name).second) << c.name;
  }
}

TEST(LinterTest, SyntaxLayerIsApartFromFunctionality) {
  for (const LintCase& c : Cheats()) {
    const bool syntax_rule =
        c.rules[0] == "no_kernel" || c.rules[0] == "no_model" || c.rules[0] == "parse_error";
    EXPECT_EQ(Lint(c.source).syntax_ok(), !syntax_rule) << c.name;
  }
}

TEST(LinterTest, EmptyAndHugeProgramsAreRefused) {
  EXPECT_EQ(Lint("").findings.at(0).rule, LintRule::kNoCode);
  EXPECT_EQ(Lint(" \n\t").findings.at(0).rule, LintRule::kNoCode);
  const std::string deep =
      absl::StrCat("x = ", std::string(5000, '('), "1", std::string(5000, ')'));
  EXPECT_EQ(Lint(deep).findings.at(0).rule, LintRule::kTooLarge);
}

TEST(LinterTest, RunawayProgramsEndWithinTheBudget) {
  std::string source =
      "import torch, triton\nimport triton.language as tl\n@triton.jit\ndef k(p):\n  tl.store(p, "
      "1)\n";
  source += "def f0(x):\n  return x\n";
  for (int i = 1; i < 30; ++i) {
    absl::StrAppend(&source, "def f", i, "(x):\n  return f", i - 1, "(f", i - 1, "(x))\n");
  }
  source += "class ModelNew(torch.nn.Module):\n  def forward(self, x):\n    return f29(x)\n";
  const LintResult result = Lint(source);
  const bool too_complicated =
      std::any_of(result.findings.begin(), result.findings.end(),
                  [](const LintFinding& f) { return f.rule == LintRule::kUnresolved; });
  EXPECT_TRUE(too_complicated) << Describe(result);
}

TEST(LinterTest, RecursionAndCyclesEnd) {
  const std::string source = R"(
import torch, triton
import triton.language as tl
@triton.jit
def k(p, q, n, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(q + o, tl.load(p + o) * 2)
def even(x, n):
    return x if n == 0 else odd(x, n - 1)
def odd(x, n):
    return even(x, n - 1)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        box = []
        box.append(box)
        out = torch.empty_like(x)
        k[(1,)](even(x, 6), out, 1, B=64)
        return out
)";
  EXPECT_TRUE(Lint(source).ok()) << Describe(Lint(source));
}

TEST(LinterTest, LinesOfTextEndAsPythonReadsThem) {
  const std::string source = R"(
import torch, triton
import triton.language as tl
@triton.jit
def k(p, q, n, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(q + o, tl.load(p + o) * 2)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        if '''a@
b''' == '''a
b''':
            return torch.relu(x)
        out = torch.empty_like(x)
        k[(1,)](x, out, 1, B=64)
        return out
)";
  EXPECT_TRUE(Lint(source).ok()) << Describe(Lint(source));
  EXPECT_FALSE(Lint(absl::StrReplaceAll(source, {{"@\n", "\r\n"}})).ok());
}

TEST(LinterTest, CutOffProgramsNeverCrash) {
  // Every prefix of an honest program is either refused or a whole program.
  const std::vector<LintCase> cases = Cases({"honest.py"});
  const std::string& source = cases.at(3).source;
  for (size_t length = 0; length < source.size(); length += 7) {
    Lint(absl::string_view(source).substr(0, length));
  }
  EXPECT_TRUE(Lint(source).ok());
}

}  // namespace
}  // namespace tritonrl
