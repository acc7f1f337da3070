// Whole runs of candidates without data on a GPU. Without one the cases are skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "exec/backend/backend_factory.h"
#include "exec/testing/run_request.h"

namespace tritonrl {
namespace {

using testing::HasSubstr;

constexpr char kReference[] = R"py(
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(4096))
    def forward(self, x):
        return torch.relu(x) * self.w
def get_inputs():
    return [torch.randn(256, 4096)]
def get_init_inputs():
    return []
)py";

constexpr char kCandidate[] = R"py(
import torch, triton, triton.language as tl
@triton.jit
def scale(x, w, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * n + i
    v = tl.load(x + at, mask=i < n)
    tl.store(y + at, tl.where(v > 0, v, 0.0) * tl.load(w + i, mask=i < n), mask=i < n)
@triton.jit
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
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(4096))
    def forward(self, x):
        y = torch.empty_like(x)
        FORWARD
        return y
)py";
constexpr char kHonest[] = "scale[(x.shape[0],)](x, self.w, y, x.shape[1], BLOCK=4096)";

class CudaClientRunTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!HasNvidiaGpu()) return;
    WorkerPoolOptions options;
    auto backend = StartNativeCudaBackend(options);
    if (absl::IsFailedPrecondition(backend.status())) {  // no bubblewrap here
      options.sandbox = SandboxKind::kNone;
      backend = StartNativeCudaBackend(options);
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
    ExecRequest request = MakeExecRequest(absl::StrReplaceAll(kCandidate, {{"FORWARD", forward}}),
                                          kReference, seconds);
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
    EXPECT_EQ(result.gpu_profile_note(), "");  // timed as graphs
  }
  static void Expect(const ExecResult& result, Outcome::Reason reason, const std::string& message) {
    EXPECT_EQ(result.outcome().reason(), reason) << result.ShortDebugString();
    EXPECT_THAT(result.outcome().message(), HasSubstr(message));
  }

  static PythonBackend* backend_;
};

PythonBackend* CudaClientRunTest::backend_ = nullptr;

TEST_F(CudaClientRunTest, AnHonestCandidateHasASpeedup) {
  for (const Rules rules : {RULES_STRICT, RULES_ROBUST}) ExpectHonest(RunWith(kHonest, rules));
  const ExecResult paper = RunWith(kHonest, RULES_PAPER);
  EXPECT_EQ(paper.outcome().reason(), Outcome::OK) << paper.ShortDebugString();
  EXPECT_GT(paper.speedup(), 0);
}

TEST_F(CudaClientRunTest, TorchThatComputesIsRefused) {
  Expect(RunWith("y = torch.relu(x) * self.w"), Outcome::RUNTIME_COMPUTE, "relu");
}

TEST_F(CudaClientRunTest, AConstantIsAMismatch) {
  Expect(RunWith("y.fill_(0.0)"), Outcome::MISMATCH, "");
  Expect(RunWith("scale[(x.shape[0],)](x, torch.zeros_like(self.w), y, 4096, BLOCK=4096)"),
         Outcome::MISMATCH, "");
}

// Memory of the call before says that the work is done: no timed call finds it so.
TEST_F(CudaClientRunTest, WorkOfAnEarlierCallSparesNone) {
  const ExecResult honest = RunWith(kHonest);
  const ExecResult kept = RunWith(
      "kept = torch.empty_like(x); once[(x.shape[0],)](x, self.w, y, kept, 4096, BLOCK=4096)");
  if (kept.outcome().reason() == Outcome::OK) {
    EXPECT_LT(kept.speedup(), honest.speedup());
  } else {
    EXPECT_EQ(kept.outcome().reason(), Outcome::MISMATCH) << kept.ShortDebugString();
  }
}

TEST_F(CudaClientRunTest, AfterAWildAccessTheNextCandidateIsJudged) {
  Expect(RunWith("scale[(1 << 20,)](x, self.w, y, x.shape[1], BLOCK=4096)"), Outcome::OUT_OF_BOUNDS,
         "illegal memory access");
  ExpectHonest(RunWith(kHonest));
}

TEST_F(CudaClientRunTest, AfterAnEndlessKernelTheNextCandidateIsJudged) {
  Expect(RunWith("endless[(1,)](x, y)", RULES_STRICT, 5), Outcome::TIMEOUT, "");
  ExpectHonest(RunWith(kHonest));
}

}  // namespace
}  // namespace tritonrl
