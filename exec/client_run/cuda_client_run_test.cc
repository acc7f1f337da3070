// Whole runs of candidates without data on a GPU. Without one the cases are skipped.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "exec/backend/backend_factory.h"
#include "exec/client_run/testing/scale_task.h"
#include "exec/testing/run_request.h"

namespace tritonrl {
namespace {

// Beside the candidate's own kernel.
constexpr char kMoreKernels[] = R"py(@triton.jit
def once(x, w, y, kept, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * n + i
    done = tl.load(kept + at, mask=i < n, other=0.0)
    if tl.max(tl.abs(done - 1.5), 0) > 0.0:
        v = tl.load(x + at, mask=i < n)
        tl.store(y + at, tl.where(v > 0, v, 0.0) * tl.load(w + i, mask=i < n), mask=i < n)
        tl.store(kept + at, 1.5, mask=i < n)
@triton.jit
def endless(x, y):
    while tl.load(x, volatile=True) == tl.load(x, volatile=True):
        tl.store(y, 1.0)
class ModelNew)py";

// The task at a size that takes a GPU some microseconds.
std::string Large(const std::string& source) {
  return absl::StrReplaceAll(source, {{"8, 64", "256, 4096"}, {"64", "4096"}});
}

class CudaClientRunTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!HasNvidiaGpu()) return;
    WorkerPoolOptions options;
    auto backend = StartCudaBackend(options);
    if (absl::IsFailedPrecondition(backend.status())) {  // no bubblewrap here
      options.sandbox = SandboxKind::kNone;
      backend = StartCudaBackend(options);
    }
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = backend->release();
  }
  static void TearDownTestSuite() {
    delete backend_;
    backend_ = nullptr;
  }
  void SetUp() override {
    if (backend_ == nullptr) GTEST_SKIP() << "there is no GPU";
  }

  static ExecResult RunWith(const std::string& forward, Rules rules = RULES_STRICT,
                            double seconds = 60) {
    const std::string candidate = absl::StrReplaceAll(
        kScaleCandidate, {{"INIT", "pass"}, {kScaleLaunch, forward}, {"LAST", "pass"}});
    ExecRequest request =
        MakeExecRequest(absl::StrReplaceAll(Large(candidate), {{"class ModelNew", kMoreKernels}}),
                        Large(kScaleReference), seconds);
    request.set_rules(rules);
    return RunOrFail(backend_, request);
  }
  static void ExpectHonest(const ExecResult& result) {
    EXPECT_EQ(result.outcome().reason(), Outcome::OK) << result.ShortDebugString();
    EXPECT_TRUE(result.correct());
    EXPECT_FALSE(result.modelled());
    EXPECT_GT(result.speedup(), 0.3);
    EXPECT_LT(result.speedup(), 10);
    EXPECT_GT(result.timing().speedup_low(), 0);
    EXPECT_GT(result.timing().paper_speedup(), 0);
    EXPECT_EQ(result.timing_note(), "");  // timed as graphs
  }

  static LocalBackend* backend_;
};

LocalBackend* CudaClientRunTest::backend_ = nullptr;

TEST_F(CudaClientRunTest, AnHonestCandidateHasASpeedup) {
  for (const Rules rules : {RULES_STRICT, RULES_ROBUST}) ExpectHonest(RunWith(kScaleLaunch, rules));
  const ExecResult paper = RunWith(kScaleLaunch, RULES_PAPER);
  EXPECT_EQ(paper.outcome().reason(), Outcome::OK) << paper.ShortDebugString();
  EXPECT_GT(paper.speedup(), 0);
}

TEST_F(CudaClientRunTest, TorchThatComputesIsRefused) {
  ExpectOutcome(RunWith("y = torch.relu(x) * self.w"), Outcome::RUNTIME_COMPUTE, "relu");
}

TEST_F(CudaClientRunTest, AConstantIsAMismatch) {
  ExpectOutcome(RunWith("y.fill_(0.0)"), Outcome::RUNTIME_COMPUTE, "no kernel wrote any");
  ExpectOutcome(RunWith("scale[(x.shape[0],)](x, torch.zeros_like(self.w), y, 4096, BLOCK=4096)"),
                Outcome::MISMATCH, "");
}

// Memory of the call before says that the work is done: no timed call finds it so.
TEST_F(CudaClientRunTest, WorkOfAnEarlierCallSparesNone) {
  const ExecResult honest = RunWith(kScaleLaunch);
  const ExecResult kept = RunWith(
      "kept = torch.empty_like(x); once[(x.shape[0],)](x, self.w, y, kept, 4096, BLOCK=4096)");
  if (kept.outcome().reason() == Outcome::OK) {
    EXPECT_LT(kept.speedup(), honest.speedup());
  } else {
    ExpectOutcome(kept, Outcome::RUNTIME_COMPUTE, "no kernel wrote any");
  }
}

TEST_F(CudaClientRunTest, AfterAWildAccessTheNextCandidateIsJudged) {
  ExpectOutcome(RunWith("scale[(1 << 20,)](x, self.w, y, x.shape[1], BLOCK=4096)"),
                Outcome::OUT_OF_BOUNDS, "illegal memory access");
  ExpectHonest(RunWith(kScaleLaunch));
}

TEST_F(CudaClientRunTest, AfterAnEndlessKernelTheNextCandidateIsJudged) {
  ExpectOutcome(RunWith("endless[(1,)](x, y)", RULES_STRICT, 5), Outcome::TIMEOUT, "");
  ExpectHonest(RunWith(kScaleLaunch));
}

}  // namespace
}  // namespace tritonrl
