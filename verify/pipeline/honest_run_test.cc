// The honest programs of the linter's corpus that say what they compute are honest indeed: they
// compile, run and agree with their references, by strict and robust rules. Prints which share of
// the robust tolerance each took. Takes minutes, so it is started by hand.
#include <cstdio>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exec/backend/backend_factory.h"
#include "gtest/gtest.h"
#include "verify/linter/testdata_reader.h"
#include "verify/pipeline/verifier.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

// Of the tolerance, by the nearest element; negative where nothing was compared with float64.
double ShareOf(const Verdict& verdict) {
  for (const Evidence& evidence : ResultOf(verdict, LAYER_CORRECT).evidence()) {
    if (evidence.rule() == "tolerance_share") return evidence.value();
  }
  return -1;
}

class HonestRunTest : public testing::TestWithParam<Rules> {};

TEST_P(HonestRunTest, EveryHonestProgramWithATaskIsCorrect) {
  BackendOptions backend_options;
  backend_options.kind = BackendKind::kNative;
  backend_options.workers = 2;
  auto backend = MakeBackend(backend_options);
  ASSERT_TRUE(backend.ok()) << backend.status();
  VerifierOptions options;
  options.parallel = 2;
  options.max_attempts = 1;
  options.rules = GetParam();
  Verifier verifier(options, backend->get(), nullptr);
  std::vector<std::pair<std::string, std::future<Verdict>>> verdicts;
  for (const char* file :
       {"honest.py", "fresh1_honest.py", "fresh2_honest.py", "fresh3_honest.py", "fresh4_honest.py",
        "fresh5_honest.py", "fresh6_honest.py", "followed_honest.py"}) {
    auto cases = ReadLintCases(file);
    ASSERT_TRUE(cases.ok()) << cases.status();
    for (const LintCase& c : *cases) {
      if (c.reference.empty()) continue;
      verdicts.emplace_back(c.name, verifier.Submit({.task = {.id = c.name, .source = c.reference},
                                                     .code = c.source}));
    }
  }
  EXPECT_GE(verdicts.size(), 100u);
  for (auto& [name, future] : verdicts) {
    const Verdict v = future.get();
    EXPECT_TRUE(IsCorrect(v)) << name << ": " << ReasonName(v.outcome().reason()) << ": "
                              << v.outcome().message();
    if (v.correctness().robust()) {
      std::printf("%-44s %2d inputs, share %.3f\n", name.c_str(), v.correctness().trials(),
                  ShareOf(v));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(BothModes, HonestRunTest, testing::Values(RULES_STRICT, RULES_ROBUST));

}  // namespace
}  // namespace tritonrl
