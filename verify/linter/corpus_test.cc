// The generated corpus knows which of its programs take a shortcut: exactly those are refused.
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tasks/dataset.h"
#include "tasks/response.h"
#include "verify/linter/linter.h"

namespace tritonrl {
namespace {

TEST(CorpusLintTest, ShortcutsAreRefusedAndEverythingElseIsLeftToTheLaterLayers) {
  int shortcuts = 0, others = 0;
  for (uint64_t i = 0; i < 1500; ++i) {
    const CorpusExample example = MakeCorpusExample({.seed = 77}, i);
    bool shortcut = false, may_be_trivial = false, broken = false;
    for (const std::string& mistake : example.mistakes) {
      shortcut = shortcut || absl::StartsWith(mistake, "struct:delegate") ||
                 mistake == "struct:copy_kernel" || mistake == "struct:never_launched" ||
                 mistake == "struct:unused_kernel";
      may_be_trivial = may_be_trivial || mistake == "struct:dropped_operator";
      broken = broken || mistake == "struct:missing_parenthesis";
    }
    const LintResult result = Lint(ReadResponse(example.response, ResponseStyle()).code);
    std::string findings;
    for (const LintFinding& f : result.findings)
      absl::StrAppend(&findings, f.line, ": ", f.text, "\n");
    if (shortcut || broken) {
      ++shortcuts;
      EXPECT_FALSE(result.ok()) << example.response;
      EXPECT_EQ(result.syntax_ok(), !broken) << example.response;
    } else if (!may_be_trivial) {  // a kernel that lost its only operator copies
      ++others;
      EXPECT_TRUE(result.ok()) << findings << example.response;
    }
  }
  EXPECT_GT(shortcuts, 30);
  EXPECT_GT(others, 1000);
}

}  // namespace
}  // namespace tritonrl
