// Runs every cheat of testdata without the linter: execution alone has to refuse it, and to say
// why. The honest programs there pass the whole verifier.
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "base/thread_pool.h"
#include "exec/backend/backend_factory.h"
#include "exec/device_backend.h"
#include "verify/linter/testdata_reader.h"
#include "verify/pipeline/layers.h"
#include "verify/pipeline/verifier.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

constexpr char kFolder[] = "verify/pipeline/testdata";
constexpr const char* kFiles[] = {
    "forbidden_1",       "forbidden_2",        "forbidden_3",       "hard_coded_1",
    "hard_coded_2",      "kernels_1",          "kernels_2",         "kernels_3",
    "patches_1",         "patches_2",          "python_1",          "python_2",
    "python_3",          "python_4",           "python_5",          "torch_callbacks_1",
    "torch_callbacks_2", "torch_callbacks_3",  "torch_callbacks_4", "torch_callbacks_5",
    "torch_functions_1", "torch_functions_2",  "torch_functions_3", "torch_functions_4",
    "torch_functions_5", "torch_hidden_names", "torch_layers_1",    "torch_layers_2",
    "torch_methods_1",   "torch_methods_2",    "torch_methods_3",   "torch_methods_4",
    "torch_transforms",  "written_1",          "written_2",         "robust"};
constexpr const char* kHonestFiles[] = {"written_1", "written_2"};
constexpr absl::string_view kRobust = "robust";  // what only these rules refuse
constexpr int kParallel = 2;                     // candidates, each with an executor
constexpr int kTrials = 3;
constexpr double kSeconds = 20;  // of one run

class CorpusCasesTest : public testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() {
    BackendOptions options;
    options.kind = BackendKind::kNative;
    options.workers = kParallel;
    auto backend = MakeBackend(options);
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = backend->release();
  }
  static void TearDownTestSuite() {
    delete backend_;
    backend_ = nullptr;
  }

  // The verdict as the verifier would give it after a static check that finds nothing.
  static absl::StatusOr<Verdict> Run(const LintCase& cheat, Rules rules) {
    ExecRequest request;
    request.set_rules(rules);
    request.set_task_id(cheat.name);
    request.set_reference_source(cheat.reference);
    request.set_candidate_source(cheat.source);
    request.set_trials(kTrials);
    request.set_skip_timing(true);
    request.mutable_limits()->set_wall_seconds(kSeconds);
    const auto result = backend_->Run(request, absl::Now() + absl::Minutes(2));
    if (!result.ok()) return result.status();
    Verdict verdict;
    MutableResult(LAYER_SYNTAX, &verdict)->set_reason(Outcome::OK);
    MutableResult(LAYER_FUNCTIONALITY, &verdict)->set_reason(Outcome::OK);
    ApplyExecResult(*result, RunAudit::kAll, /*measure_time=*/false, kTrials, &verdict);
    Summarize(&verdict);
    return verdict;
  }

  static void Expect(const LintCase& cheat, const absl::StatusOr<Verdict>& verdict) {
    ASSERT_TRUE(verdict.ok()) << cheat.name << ": " << verdict.status();
    const std::string reason = ReasonName(verdict->outcome().reason());
    const std::string said =
        absl::StrCat(cheat.name, ": ", reason, ": ", verdict->outcome().message());
    EXPECT_TRUE(absl::c_linear_search(cheat.rules, reason))
        << said << "; expected " << absl::StrJoin(cheat.rules, " or ");
    EXPECT_TRUE(absl::StrContains(verdict->outcome().message(), cheat.found))
        << said << "; expected " << cheat.found;
    if (cheat.line == 0) return;
    const auto& evidence = ResultOf(*verdict, verdict->failed_layer()).evidence();
    EXPECT_EQ(evidence.empty() ? 0 : evidence[0].line(), cheat.line) << said;
  }

  static inline DeviceBackend* backend_ = nullptr;
};

TEST_P(CorpusCasesTest, CheatsAreRefusedByExecutionAlone) {
  ASSERT_NE(backend_, nullptr);
  const auto cases = ReadLintCases(absl::StrCat(GetParam(), "_cheats.py"), kFolder);
  ASSERT_TRUE(cases.ok()) << cases.status();
  const Rules rules = absl::string_view(GetParam()) == kRobust ? RULES_ROBUST : RULES_STRICT;
  std::vector<absl::StatusOr<Verdict>> verdicts(cases->size(), absl::UnknownError("not run"));
  {
    ThreadPool pool(kParallel);
    for (size_t i = 0; i < cases->size(); ++i) {
      pool.Schedule([&, i] { verdicts[i] = Run((*cases)[i], rules); });
    }
  }
  ASSERT_FALSE(cases->empty());
  for (size_t i = 0; i < cases->size(); ++i) Expect((*cases)[i], verdicts[i]);
}

class HonestCasesTest : public CorpusCasesTest {};

TEST_P(HonestCasesTest, HonestProgramsAreCorrect) {
  ASSERT_NE(backend_, nullptr);
  const auto cases = ReadLintCases(absl::StrCat(GetParam(), "_honest.py"), kFolder);
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_FALSE(cases->empty());
  VerifierOptions options;
  options.parallel = kParallel;
  options.max_attempts = 1;
  Verifier verifier(options, backend_, nullptr);
  std::vector<std::future<Verdict>> verdicts;
  for (const LintCase& c : *cases) {
    verdicts.push_back(
        verifier.Submit({.task = {.id = c.name, .source = c.reference}, .code = c.source}));
  }
  for (size_t i = 0; i < verdicts.size(); ++i) {
    const Verdict verdict = verdicts[i].get();
    EXPECT_TRUE(IsCorrect(verdict))
        << (*cases)[i].name << ": " << ReasonName(verdict.outcome().reason()) << ": "
        << verdict.outcome().message();
  }
}

TEST(CorpusFiles, EveryFileIsRun) {
  const auto snippets = Runfile(absl::StrCat(kFolder, "/snippets.py"));
  ASSERT_TRUE(snippets.ok()) << snippets.status();
  auto found = ListDirectory(DirName(*snippets));
  ASSERT_TRUE(found.ok()) << found.status();
  std::vector<std::string> expected = {"snippets.py"};
  for (const char* file : kFiles) expected.push_back(absl::StrCat(file, "_cheats.py"));
  for (const char* file : kHonestFiles) expected.push_back(absl::StrCat(file, "_honest.py"));
  absl::c_sort(*found);
  absl::c_sort(expected);
  EXPECT_EQ(*found, expected);
}

INSTANTIATE_TEST_SUITE_P(Kinds, CorpusCasesTest, testing::ValuesIn(kFiles),
                         [](const auto& info) { return std::string(info.param); });

INSTANTIATE_TEST_SUITE_P(Kinds, HonestCasesTest, testing::ValuesIn(kHonestFiles),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tritonrl
