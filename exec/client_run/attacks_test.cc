// Programs written against the executor's rules, with no static check before them: what is accepted
// here is what they let through. Honest programs beside them must be accepted.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "exec/backend/backend_factory.h"
#include "exec/client_run/testing/attack_cases.h"
#include "exec/testing/run_request.h"

namespace tritonrl {
namespace {

constexpr const char* kFiles[] = {"addresses", "benchmarks", "calls",   "constructor",
                                  "copies",    "frames",     "kernels", "neutral",
                                  "outputs",   "patches",    "process", "small"};
constexpr double kSeconds = 15;        // of one run
constexpr double kSecondsOfHangs = 3;  // where the limit is what is expected

Rules RulesOf(const std::string& name) {
  if (name == "paper") return RULES_PAPER;
  return name == "strict" ? RULES_STRICT : RULES_ROBUST;
}

bool Expects(const AttackCase& attack, const std::string& reason) {
  return std::find(attack.reasons.begin(), attack.reasons.end(), reason) != attack.reasons.end();
}

class AttacksTest : public testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() {
    auto cases = ReadAttackCases();
    ASSERT_TRUE(cases.ok()) << cases.status();
    cases_ = *std::move(cases);
    WorkerPoolOptions options;
    options.workers = 1;
    auto backend = StartNativeBackend(options);
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = backend->release();
  }
  static void TearDownTestSuite() {
    delete backend_;
    backend_ = nullptr;
  }

  static ExecResult Run(const AttackCase& attack) {
    const bool hangs = !attack.reasons.empty() && attack.reasons[0] == "timeout";
    ExecRequest request =
        MakeExecRequest(attack.source, attack.reference, hangs ? kSecondsOfHangs : kSeconds);
    request.set_rules(RulesOf(attack.rules));
    request.set_seed(7);
    return RunOrFail(backend_, request);
  }

  static inline std::vector<AttackCase> cases_;
  static inline LocalBackend* backend_ = nullptr;
};

TEST_P(AttacksTest, AreRefusedAndHonestProgramsAreNot) {
  ASSERT_NE(backend_, nullptr);
  int attacks = 0, honest = 0;
  for (const AttackCase& attack : cases_) {
    if (attack.file != GetParam()) continue;
    const absl::Time began = absl::Now();
    const ExecResult result = Run(attack);
    const std::string reason = ReasonOfResult(result);
    const std::string said =
        absl::StrCat(attack.file, ".", attack.name, ": ", reason, ": ", result.outcome().message());
    EXPECT_LT(absl::Now() - began, absl::Seconds(60)) << said;
    // What the executor cannot run gets no verdict.
    if (reason != "not_executable") {
      EXPECT_NE(result.outcome().status(), Outcome::STATUS_INFRA_ERROR) << said;
    }
    EXPECT_FALSE(absl::StrContains(result.outcome().message(), "FOUND")) << said;
    if (attack.reasons.empty()) {
      ++honest;
      EXPECT_EQ(reason, "ok") << said;
    } else {
      ++attacks;
      EXPECT_TRUE(Expects(attack, reason)) << said;
    }
  }
  EXPECT_GE(attacks, 5);
  EXPECT_GE(honest, 1);
}

INSTANTIATE_TEST_SUITE_P(Kinds, AttacksTest, testing::ValuesIn(kFiles),
                         [](const auto& info) { return std::string(info.param); });

TEST(AttackCases, EveryFileIsRun) {
  const auto cases = ReadAttackCases();
  ASSERT_TRUE(cases.ok()) << cases.status();
  std::set<std::string> files, names;
  for (const AttackCase& attack : *cases) {
    files.insert(attack.file);
    EXPECT_TRUE(names.insert(absl::StrCat(attack.file, ".", attack.name)).second) << attack.name;
  }
  EXPECT_EQ(files, std::set<std::string>(std::begin(kFiles), std::end(kFiles)));
  EXPECT_GE(cases->size(), 100u);
}

}  // namespace
}  // namespace tritonrl
