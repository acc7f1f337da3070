// The generated corpus knows which of its programs take a shortcut. Those that leave everything to
// torch, or launch nothing, are refused; programs that only make mistakes never are.
#include <string>

#include "gtest/gtest.h"
#include "tasks/dataset.h"
#include "tasks/response.h"
#include "verify/linter/linter.h"

namespace tritonrl {
namespace {

TEST(CorpusLintTest, OnlyShortcutsAreRefused) {
  int certain = 0, broken = 0, others = 0;
  for (uint64_t i = 0; i < 1500; ++i) {
    const CorpusExample example = MakeCorpusExample({.seed = 77}, i);
    bool refused = false, left_to_the_run = false, parses = true;
    for (const std::string& mistake : example.mistakes) {
      refused = refused || mistake == "struct:delegate_all";
      left_to_the_run =
          left_to_the_run || mistake == "struct:delegate_last" || mistake == "struct:copy_kernel";
      parses = parses && mistake != "struct:missing_parenthesis";
    }
    const LintResult result = Lint(ReadResponse(example.response, ResponseStyle()).code);
    EXPECT_EQ(result.syntax_ok(), parses) << example.response;
    broken += !parses;
    if (!parses || left_to_the_run) continue;
    ++(refused ? certain : others);
    EXPECT_EQ(result.ok(), !refused) << (result.ok() ? "" : result.findings[0].text) << "\n"
                                     << example.response;
  }
  EXPECT_GT(certain, 20);
  EXPECT_GT(broken, 20);
  EXPECT_GT(others, 1000);
}

}  // namespace
}  // namespace tritonrl
