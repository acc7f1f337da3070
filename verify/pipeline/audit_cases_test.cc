// Runs the whole verifier on cheats whose operators in forward only execution tells from movement.
#include <future>
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

TEST(AuditCasesTest, CheatsAreRefusedByTheAuditOfForward) {
  BackendOptions backend_options;
  backend_options.kind = BackendKind::kNative;
  backend_options.workers = 1;
  auto backend = MakeBackend(backend_options);
  ASSERT_TRUE(backend.ok()) << backend.status();
  VerifierOptions options;
  options.max_attempts = 1;
  Verifier verifier(options, backend->get(), nullptr);
  auto cases = ReadLintCases("audit_cheats.py");
  ASSERT_TRUE(cases.ok()) << cases.status();
  EXPECT_GE(cases->size(), 3u);
  std::vector<std::future<Verdict>> futures;
  for (const LintCase& c : *cases) {
    futures.push_back(verifier.Submit(
        {.task = {.id = c.name, .source = c.reference}, .code = c.source, .key = c.name}));
  }
  for (size_t i = 0; i < futures.size(); ++i) {
    const Verdict v = futures[i].get();
    EXPECT_EQ(ReasonName(v.outcome().reason()), (*cases)[i].rules[0])
        << (*cases)[i].name << ": " << v.outcome().message();
    EXPECT_EQ(v.failed_layer(), LAYER_FUNCTIONALITY) << (*cases)[i].name;
    EXPECT_NE(v.outcome().message().find(" rounds"), std::string::npos) << v.outcome().message();
    EXPECT_GT(ResultOf(v, LAYER_FUNCTIONALITY).evidence(0).line(), 0) << v.outcome().message();
  }
}

}  // namespace
}  // namespace tritonrl
