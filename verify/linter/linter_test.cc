// Every honest program is accepted; every cheating one is refused with the right rule, line and
// name.
#include "verify/linter/linter.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
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

std::vector<LintCase> Cases(const std::string& file) {
  absl::StatusOr<std::vector<LintCase>> cases = ReadLintCases(file);
  EXPECT_TRUE(cases.ok()) << cases.status();
  return cases.ok() ? *cases : std::vector<LintCase>();
}

TEST(LinterTest, AcceptsEveryHonestProgram) {
  const std::vector<LintCase> cases = Cases("honest.py");
  EXPECT_GE(cases.size(), 40u);
  for (const LintCase& c : cases) {
    const LintResult result = Lint(c.source);
    EXPECT_TRUE(result.ok()) << c.name << ":\n" << Describe(result);
    EXPECT_FALSE(result.launched_kernels.empty()) << c.name;
    EXPECT_EQ(result.launched_kernels.size(), result.launch_lines.size());
  }
}

TEST(LinterTest, RefusesEveryCheatWithRuleLineAndName) {
  const std::vector<LintCase> cases = Cases("cheats.py");
  EXPECT_GE(cases.size(), 90u);
  for (const LintCase& c : cases) {
    const LintResult result = Lint(c.source);
    const bool found =
        std::any_of(result.findings.begin(), result.findings.end(), [&](const LintFinding& f) {
          const bool same_name =
              f.name == c.found || (c.found == "numpy" && f.name.substr(0, 5) == "numpy");
          return LintRuleName(f.rule) == c.rule && same_name && (c.line == 0 || c.line == f.line) &&
                 f.line > 0 && !f.text.empty();
        });
    EXPECT_TRUE(found) << c.name << " should give " << c.rule << " [" << c.found << "] at line "
                       << c.line << ":\n"
                       << Describe(result);
    EXPECT_FALSE(result.ok()) << c.name;
  }
}

TEST(LinterTest, SyntaxLayerIsApartFromFunctionality) {
  for (const LintCase& c : Cases("cheats.py")) {
    const bool syntax_rule =
        c.rule == "no_kernel" || c.rule == "no_model" || c.rule == "parse_error";
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

TEST(LinterTest, CutOffProgramsNeverCrash) {
  // Every prefix of an honest program is either refused or a whole program.
  const std::vector<LintCase> cases = Cases("honest.py");
  const std::string& source = cases.at(3).source;
  for (size_t length = 0; length < source.size(); length += 7) {
    Lint(absl::string_view(source).substr(0, length));
  }
  EXPECT_TRUE(Lint(source).ok());
}

}  // namespace
}  // namespace tritonrl
