// Runs the whole verifier on programs that only ablation can tell apart: cheats that pass the
// linter and the audit of operators, and honest programs that look like them.
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "exec/backend/backend_factory.h"
#include "gtest/gtest.h"
#include "verify/linter/testdata_reader.h"
#include "verify/pipeline/verifier.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

using Verdicts = std::vector<std::pair<LintCase, Verdict>>;

// Returns the verdicts on the programs of a file, with or without ablation.
Verdicts Check(const std::string& file, bool ablation) {
  static DeviceBackend* const backend = [] {
    BackendOptions options;
    options.kind = BackendKind::kNative;
    options.workers = 2;
    auto made = MakeBackend(options);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? made->release() : nullptr;
  }();
  auto cases = ReadLintCases(file);
  EXPECT_TRUE(cases.ok()) << cases.status();
  if (backend == nullptr || !cases.ok()) return {};
  VerifierOptions options;
  options.parallel = 2;
  options.max_attempts = 1;
  options.ablation = ablation;
  Verifier verifier(options, backend, nullptr);
  std::vector<std::future<Verdict>> futures;
  for (const LintCase& c : *cases) {
    futures.push_back(verifier.Submit(
        {.task = {.id = c.name, .source = c.reference}, .code = c.source, .key = c.name}));
  }
  Verdicts verdicts;
  for (size_t i = 0; i < futures.size(); ++i) verdicts.emplace_back((*cases)[i], futures[i].get());
  return verdicts;
}

TEST(AblationCasesTest, CheatsAreRefusedWithTheirKernelAndLine) {
  int decorations = 0;
  for (const auto& [c, v] : Check("ablation_cheats.py", true)) {
    EXPECT_FALSE(IsInfraError(v)) << c.name << ": " << v.outcome().message();
    EXPECT_EQ(ReasonName(v.outcome().reason()), c.rules[0])
        << c.name << ": " << v.outcome().message();
    if (c.rules[0] == "runtime_compute") {  // no byte of the result is a kernel's
      ++decorations;
      EXPECT_EQ(v.failed_layer(), LAYER_FUNCTIONALITY) << c.name;
    }
    if (c.rules[0] != "decoration") continue;
    ++decorations;
    EXPECT_EQ(v.failed_layer(), LAYER_FUNCTIONALITY) << c.name;
    const Evidence& evidence = ResultOf(v, LAYER_FUNCTIONALITY).evidence(0);
    EXPECT_EQ(evidence.rule(), "decoration");
    const std::string definition = absl::StrCat("def ", evidence.kernel(), "(");
    int line = 1;
    for (const char letter : c.source.substr(0, c.source.find(definition))) line += letter == '\n';
    EXPECT_EQ(evidence.line(), line) << c.name;
  }
  EXPECT_GE(decorations, 7);
}

TEST(AblationCasesTest, NothingElseSeesTheDecorations) {
  for (const auto& [c, v] : Check("ablation_cheats.py", false)) {
    if (c.rules[0] != "decoration") continue;
    EXPECT_TRUE(IsCorrect(v)) << c.name << ": " << v.outcome().message();
  }
}

TEST(AblationCasesTest, HonestProgramsAreAccepted) {
  const Verdicts verdicts = Check("ablation_honest.py", true);
  EXPECT_GE(verdicts.size(), 12u);
  for (const auto& [c, v] : verdicts) {
    EXPECT_TRUE(IsCorrect(v)) << c.name << ": " << ReasonName(v.outcome().reason()) << ": "
                              << v.outcome().message();
    bool says = false;
    for (const Evidence& e : ResultOf(v, LAYER_FUNCTIONALITY).evidence())
      says |= e.rule() == "changes_nothing";
    const bool expected = c.name == "bias_of_zeros_in_place" ||
                          c.name == "tail_kernel_with_nothing_left" ||
                          c.name == "relu_after_sigmoid_in_place";
    EXPECT_EQ(says, expected) << c.name;
  }
}

}  // namespace
}  // namespace tritonrl
