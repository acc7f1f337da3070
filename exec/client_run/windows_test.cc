// Whole runs of candidates whose inputs and outputs pass through windows, without a GPU: they end
// as those in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "exec/backend/backend_factory.h"
#include "exec/testing/run_request.h"

namespace tritonrl {
namespace {

using testing::HasSubstr;

// Weights, an input with strides and one that is no tensor; two results.
constexpr char kReference[] = R"py(
import torch
class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(width))
        self.b = torch.nn.Parameter(torch.ones(width))
    def forward(self, x, times):
        y = torch.relu(x) * self.w * times
        return y, y[0] + self.b
def get_inputs():
    return [torch.randn(64, 8).t(), 3]
def get_init_inputs():
    return [64]
)py";

constexpr char kCandidate[] = R"py(
import torch, triton, triton.language as tl
@triton.jit
def scale(x, w, b, y, z, n, sx, sy, times, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    v = tl.load(x + row * sx + i * sy, mask=i < n)
    y_row = tl.where(v > 0, v, 0.0) * tl.load(w + i, mask=i < n) * times
    tl.store(y + row * n + i, y_row, mask=i < n)
    tl.store(z + i, y_row + tl.load(b + i, mask=i < n), mask=(i < n) & (row == 0))
@triton.jit
def idle(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i))
class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(width))
        self.b = torch.nn.Parameter(torch.ones(width))
    def forward(self, x, times):
        y, z = torch.empty(x.shape, device=x.device), torch.empty(x.shape[1], device=x.device)
        scale[(x.shape[0],)](x, self.w, self.b, y, z, x.shape[1], *x.stride(), TIMES, BLOCK=64)
        LAST
        return y, z
)py";

class WindowsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto backend = StartNativeBackendWithWindows(WorkerPoolOptions{.workers = 1}, 0);
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = backend->release();
  }
  static void TearDownTestSuite() {
    delete backend_;
    backend_ = nullptr;
  }
  void SetUp() override { ASSERT_NE(backend_, nullptr); }

  static ExecResult Run(const std::string& times, const std::string& last = "pass",
                        Rules rules = RULES_STRICT, const std::string& reference = kReference,
                        const std::string& candidate = kCandidate) {
    ExecRequest request = MakeExecRequest(
        absl::StrReplaceAll(candidate, {{"TIMES", times}, {"LAST", last}}), reference);
    request.set_rules(rules);
    return RunOrFail(backend_, request);
  }

  static LocalBackend* backend_;
};

LocalBackend* WindowsTest::backend_ = nullptr;

TEST_F(WindowsTest, AnHonestCandidateIsRight) {
  for (const Rules rules : {RULES_STRICT, RULES_ROBUST, RULES_PAPER}) {
    const ExecResult result = Run("times", "pass", rules);
    EXPECT_EQ(result.outcome().reason(), Outcome::OK) << result.ShortDebugString();
    EXPECT_TRUE(result.correct());
    EXPECT_GT(result.speedup(), 0);
  }
}

TEST_F(WindowsTest, AWrongResultIsAMismatch) {
  const ExecResult result = Run("2");
  EXPECT_EQ(result.outcome().reason(), Outcome::MISMATCH) << result.ShortDebugString();
  EXPECT_THAT(result.outcome().message(), HasSubstr("512"));  // elements
  EXPECT_EQ(Run("times", "y = y[:4]").outcome().reason(), Outcome::MISMATCH);
  EXPECT_EQ(Run("times", "y = y.double()").outcome().reason(), Outcome::MISMATCH);
  // Larger than the window.
  EXPECT_EQ(Run("times", "y = torch.empty(4096, 64, device=x.device)").outcome().reason(),
            Outcome::MISMATCH);
}

TEST_F(WindowsTest, OnlyALaterTrialIsWrong) {
  const ExecResult result =
      Run("times if CALLS.append(1) or len(CALLS) < 2 else 5", "pass", RULES_STRICT, kReference,
          absl::StrReplaceAll(kCandidate, {{"class", "CALLS = []\nclass"}}));
  EXPECT_EQ(result.outcome().reason(), Outcome::MISMATCH) << result.ShortDebugString();
  EXPECT_EQ(result.mismatch().trial(), 1);
}

// Outputs are kept, and compared with later ones.
TEST_F(WindowsTest, AKernelThatChangesNothingIsFound) {
  const ExecResult result =
      Run("times", "idle[(1,)](y, torch.empty(64, device=x.device), BLOCK=64)");
  ASSERT_EQ(result.ablations_size(), 2) << result.ShortDebugString();
  EXPECT_EQ(result.ablations(0).effect(), ABLATION_CHANGED);
  EXPECT_EQ(result.ablations(1).effect(), ABLATION_UNCHANGED) << result.ablations(1).text();
}

TEST_F(WindowsTest, InputsThatWereChangedAreSeen) {
  const ExecResult result = Run("times", "x.zero_()");
  EXPECT_EQ(result.outcome().reason(), Outcome::MISMATCH) << result.ShortDebugString();
  EXPECT_THAT(result.outcome().message(), HasSubstr("changed its inputs"));
}

// Buffers that change: all calls are live.
TEST_F(WindowsTest, CallsMayDependOnThoseBefore) {
  const std::string buffer = "self.register_buffer('b', torch.ones(width))";
  const std::string parameter = "self.b = torch.nn.Parameter(torch.ones(width))";
  const std::string reference = absl::StrReplaceAll(
      kReference, {{parameter, buffer}, {"y = torch.relu(x)", "self.b += 1; y = torch.relu(x)"}});
  const std::string candidate = absl::StrReplaceAll(
      kCandidate, {{parameter, buffer},
                   {"        y, z =", "        bump[(1,)](self.b, BLOCK=64)\n        y, z ="},
                   {"@triton.jit\ndef scale",
                    "@triton.jit\ndef bump(b, BLOCK: tl.constexpr):\n    i = tl.arange(0, BLOCK)\n"
                    "    tl.store(b + i, tl.load(b + i) + 1)\n@triton.jit\ndef scale"}});
  EXPECT_EQ(Run("times", "pass", RULES_STRICT, reference, candidate).outcome().reason(),
            Outcome::OK);
  EXPECT_EQ(Run("times", "pass", RULES_STRICT, reference).outcome().reason(), Outcome::MISMATCH);
}

}  // namespace
}  // namespace tritonrl
