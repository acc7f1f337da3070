// Runs the whole verifier on real candidates: linter, sandboxed worker, compiler, execution,
// comparison, modelled time.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "exec/backend/backend_factory.h"
#include "gtest/gtest.h"
#include "verify/pipeline/verifier.h"
#include "verify/testing/honest_program.h"
#include "verify/verdict/verdict.h"

namespace tritonrl {
namespace {

std::string Example(const std::string& name) {
  auto path = Runfile("verify/examples/" + name);
  auto text = path.ok() ? ReadFile(*path) : path;
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : "";
}

constexpr char kReluReference[] = R"py(
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.randn(8, 40)]
def get_init_inputs():
    return []
)py";

// HonestProgram with `lines` inserted before the last line of forward.
std::string WithBody(const std::string& lines, const std::string& imports = "") {
  std::string code = imports + HonestProgram();
  const size_t at = code.find("        return out");
  return code.insert(at, lines);
}

class ExecTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    BackendOptions options;
    options.kind = BackendKind::kNative;
    options.workers = 1;
    options.pool.limits.set_memory_bytes(int64_t{600} << 20);
    auto backend = MakeBackend(options);
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = backend->release();
  }
  static void TearDownTestSuite() {
    delete backend_;
    backend_ = nullptr;
  }

  // functionality = false lets programs that the linter would refuse run in the worker.
  Verdict Run(const std::string& reference, const std::string& code, bool functionality = true,
              double seconds = 20) {
    VerifierOptions options;
    options.parallel = 1;
    options.check_functionality = functionality;
    options.run_limit = absl::Seconds(seconds);
    options.max_attempts = 1;
    Verifier verifier(options, backend_, nullptr);
    const Verdict v =
        verifier.Submit({.task = {.id = "the task", .source = reference}, .code = code}).get();
    EXPECT_EQ(v.outcome().message().find('\n'), std::string::npos) << v.outcome().message();
    EXPECT_FALSE(v.outcome().message().empty());
    return v;
  }

  static DeviceBackend* backend_;
};

DeviceBackend* ExecTest::backend_ = nullptr;

TEST_F(ExecTest, HonestCandidateIsCorrectWithAModelledSpeedup) {
  const Verdict v = Run(Example("softmax_reference.py"), Example("softmax_honest.py"));
  EXPECT_TRUE(IsCorrect(v)) << v.DebugString();
  EXPECT_EQ(v.correctness().trials_passed(), 5);
  EXPECT_GT(SpeedupOf(v), 0);
  EXPECT_TRUE(v.speedup().modelled());
  EXPECT_EQ(v.kernels(0), "scaled_softmax_kernel");
}

TEST_F(ExecTest, WrongCandidateIsAMismatchWithNumbers) {
  const Verdict v = Run(Example("softmax_reference.py"), Example("softmax_wrong.py"));
  EXPECT_EQ(v.failed_layer(), LAYER_CORRECT) << v.DebugString();
  EXPECT_EQ(v.outcome().reason(), Outcome::MISMATCH);
  EXPECT_TRUE(IsCompiled(v));
  EXPECT_GT(ResultOf(v, LAYER_CORRECT).evidence(0).value(), 1e-2);
}

TEST_F(ExecTest, AMismatchNamesParametersThatTheReferenceDoesNotHave) {
  const std::string scale = "        self.scale = scale\n";
  std::string code = Example("softmax_wrong.py");
  ASSERT_NE(code.find(scale), std::string::npos);
  code.insert(code.find(scale), "        self.x = nn.Linear(2, 2, bias=False)\n");
  const Verdict v = Run(Example("softmax_reference.py"), code);
  EXPECT_EQ(v.outcome().reason(), Outcome::MISMATCH) << v.DebugString();
  EXPECT_NE(
      ResultOf(v, LAYER_CORRECT)
          .evidence(0)
          .text()
          .find(
              "; parameter or buffer 'x.weight' of ModelNew has no counterpart in Model, it keeps "
              "its own initial value"),
      std::string::npos)
      << ResultOf(v, LAYER_CORRECT).evidence(0).text();
}

TEST_F(ExecTest, CheatIsRefusedBeforeItRuns) {
  const Verdict v = Run(Example("softmax_reference.py"), Example("softmax_cheat.py"));
  EXPECT_EQ(v.failed_layer(), LAYER_FUNCTIONALITY);
  EXPECT_EQ(v.backend(), "");
  // Without the functionality layer the cheat passes.
  EXPECT_TRUE(IsCorrect(Run(Example("softmax_reference.py"), Example("softmax_cheat.py"), false)));
}

TEST_F(ExecTest, CompileErrorsComeFromTheCompiler) {
  std::string code = HonestProgram();
  code.replace(code.find("tl.maximum(x, 0.0)"), 18, "tl.no_such_thing(x)");
  const Verdict v = Run(kReluReference, code);
  EXPECT_EQ(v.failed_layer(), LAYER_COMPILED) << v.DebugString();
  EXPECT_EQ(ResultOf(v, LAYER_COMPILED).reason(), Outcome::COMPILE_ERROR);
  EXPECT_NE(v.outcome().message().find("no_such_thing"), std::string::npos)
      << v.outcome().message();
}

TEST_F(ExecTest, BrokenReferenceIsNotTheCandidatesFault) {
  const Verdict v = Run("import torch\nclass Model: pass\n", HonestProgram());
  EXPECT_EQ(v.outcome().reason(), Outcome::REFERENCE_FAILED);
  EXPECT_NE(v.outcome().message().find("the task"), std::string::npos) << v.outcome().message();
}

TEST_F(ExecTest, MisbehaviourEndsInOneSentenceAndTheNextCandidateRuns) {
  struct Case {
    const char* what;
    std::string code;
    std::vector<Outcome::Reason> reasons;  // any of them
    double seconds;
  };
  const std::string os = "import os\n";
  for (const Case& c : std::vector<Case>{
           {"hangs", WithBody("        while True:\n            pass\n"), {Outcome::TIMEOUT}, 3},
           {"forks without end",
            WithBody("        while True:\n            os.fork()\n", os),
            {Outcome::PROCESS_LIMIT, Outcome::BAD_RESULT},
            20},
           {"allocates without end",
            WithBody("        hold = []\n        while True:\n            hold.append(torch.ones(1 "
                     "<< 24))\n"),
            {Outcome::OUT_OF_MEMORY},
            20},
           {"prints gigabytes",
            WithBody("        while True:\n            print('x' * 1000000)\n"),
            {Outcome::OUTPUT_LIMIT},
            20},
           {"exits", WithBody("        os._exit(0)\n", os), {Outcome::EXITED}, 20},
           {"kills itself",
            WithBody("        os.kill(os.getpid(), 9)\n", os),
            {Outcome::CRASHED},
            20},
           {"raises",
            WithBody("        raise ValueError('no')\n"),
            {Outcome::RUNTIME_ERROR},
            20}}) {
    const Verdict v = Run(kReluReference, c.code, /*functionality=*/false, c.seconds);
    EXPECT_FALSE(IsInfraError(v)) << c.what << ": " << v.DebugString();
    EXPECT_EQ(std::count(c.reasons.begin(), c.reasons.end(), v.outcome().reason()), 1)
        << c.what << ": " << v.DebugString();
    EXPECT_FALSE(IsCorrect(v)) << c.what;
  }
  EXPECT_TRUE(IsCorrect(Run(kReluReference, HonestProgram())));
}

TEST_F(ExecTest, WritesOutsideItsOwnFolderFail) {
  const Verdict v =
      Run(kReluReference, WithBody("        open('/etc/tritonrl_was_here', 'w').write('x')\n"),
          /*functionality=*/false);
  EXPECT_FALSE(IsCorrect(v));
  EXPECT_EQ(v.outcome().reason(), Outcome::RUNTIME_ERROR) << v.DebugString();
  EXPECT_FALSE(FileExists("/etc/tritonrl_was_here"));
}

}  // namespace
}  // namespace tritonrl
