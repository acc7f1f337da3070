// Whole runs of candidates whose processes hold no data, in the real sandbox.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "exec/backend/backend_factory.h"
#include "exec/testing/run_request.h"

namespace tritonrl {
namespace {

using testing::HasSubstr;

// A layer with weights: y = relu(x) * w.
constexpr char kReference[] = R"py(
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(64))
    def forward(self, x):
        return torch.relu(x) * self.w
def get_inputs():
    return [torch.randn(8, 64)]
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
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        INIT
        self.w = torch.nn.Parameter(torch.randn(64))
    def forward(self, x):
        y = torch.empty_like(x)
        scale[(x.shape[0],)](x, self.w, y, x.shape[1], BLOCK=64)
        LAST
        return y
)py";

class ClientRunTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto backend = StartNativeBackend(WorkerPoolOptions{.workers = 1});
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = backend->release();
  }
  static void TearDownTestSuite() {
    delete backend_;
    backend_ = nullptr;
  }
  void SetUp() override { ASSERT_NE(backend_, nullptr); }

  static ExecResult Run(const std::string& candidate, const std::string& reference = kReference,
                        Rules rules = RULES_STRICT) {
    ExecRequest request = MakeExecRequest(candidate, reference);
    request.set_rules(rules);
    return RunOrFail(backend_, request);
  }
  // The candidate with statements in its constructor and at the end of forward.
  static ExecResult RunWith(const std::string& init, const std::string& last,
                            Rules rules = RULES_STRICT) {
    return Run(absl::StrReplaceAll(kCandidate, {{"INIT", init}, {"LAST", last}}), kReference,
               rules);
  }
  static void Expect(const ExecResult& result, Outcome::Reason reason, const std::string& message) {
    EXPECT_EQ(result.outcome().reason(), reason) << result.ShortDebugString();
    EXPECT_THAT(result.outcome().message(), HasSubstr(message));
  }

  static inline PythonBackend* backend_ = nullptr;
};

TEST_F(ClientRunTest, AnHonestCandidateIsCorrect) {
  for (const Rules rules : {RULES_STRICT, RULES_ROBUST, RULES_PAPER}) {
    const ExecResult result = RunWith("pass", "pass", rules);
    Expect(result, Outcome::OK, "");
    EXPECT_TRUE(result.correct());
    EXPECT_TRUE(result.compiled());
    EXPECT_TRUE(result.modelled());
    ASSERT_EQ(result.launches_size(), 1);
    EXPECT_EQ(result.launches(0).name(), "scale");
    EXPECT_EQ(result.launches(0).line(), 4);
    EXPECT_EQ(result.launches(0).grid(0), 8);
    EXPECT_EQ(result.ablation_all(), ABLATION_CHANGED);
  }
}

// As KernelBook's tasks do, whose projects have configurations of their own.
TEST_F(ClientRunTest, ConstructorsTakeConfigurations) {
  const std::string head = "from _paritybench_helpers import _mock_config, patch_functional\n";
  const std::pair<std::string, std::string> init = {
      "__init__(self):", "__init__(self, cfg):\n        assert cfg.inner['n'] == 64"};
  const std::string reference = absl::StrReplaceAll(
      kReference,
      {init, {"return []", "return [[], {'cfg': _mock_config(inner=_mock_config(n=64))}]"}});
  const ExecResult result =
      Run(head + absl::StrReplaceAll(kCandidate, {init, {"INIT", "pass"}, {"LAST", "pass"}}),
          head + reference);
  Expect(result, Outcome::OK, "");
  EXPECT_TRUE(result.correct()) << result.ShortDebugString();
}

TEST_F(ClientRunTest, OperatorsThatComputeAreRefusedWithTheirLine) {
  const ExecResult result = RunWith("pass", "y = y @ y.T @ y");
  Expect(result, Outcome::RUNTIME_COMPUTE, "aten::mm computes on");
  EXPECT_EQ(result.outcome().line(), 17);
  Expect(RunWith("pass", "y = torch.relu(y)"), Outcome::RUNTIME_COMPUTE, "aten::relu");
  Expect(RunWith("pass", "y = torch.tensor(x.tolist())"), Outcome::RUNTIME_COMPUTE, "reads");
  Expect(RunWith("pass", "y[:, :32] = 0; y = y + 0"), Outcome::RUNTIME_COMPUTE, "aten::add");
}

TEST_F(ClientRunTest, AWrongResultIsAMismatch) {
  const ExecResult result = RunWith("pass",
                                    "y = y.t().contiguous().t()[:, torch.arange(63, -1, -1)"
                                    ".tolist()[0]:]");
  EXPECT_EQ(result.mismatch().kind(), "shape") << result.ShortDebugString();
  EXPECT_EQ(RunWith("pass", "y = x").mismatch().kind(), "value");
  EXPECT_EQ(RunWith("pass", "y = y.half()").mismatch().kind(), "dtype");
  EXPECT_EQ(RunWith("pass", "x.zero_()").mismatch().kind(), "input_changed");
  EXPECT_EQ(RunWith("pass", "x.zero_()", RULES_PAPER).outcome().reason(), Outcome::OK);
}

TEST_F(ClientRunTest, AResultKeptFromAnEarlierCallIsWrong) {
  const ExecResult result = RunWith("self.kept = None",
                                    "self.kept = y if self.kept is None else self.kept\n"
                                    "        y = self.kept");
  EXPECT_EQ(result.mismatch().trial(), 1) << result.ShortDebugString();
}

// The process sees another seed than that of the reference's weights.
TEST_F(ClientRunTest, WhatTheProcessComputesOfTheSeedDoesNotFit) {
  const std::string kept =
      "self.t = (torch.randn(64, device='cpu') * 1).cuda()  # as the reference draws";
  const std::string used = "scale[(8,)](x, self.t, y, 64, BLOCK=64)";
  EXPECT_EQ(RunWith(kept, used).mismatch().kind(), "value");
  // Drawn on the device it is the reference's.
  const std::string drawn = "self.t = torch.randn(64)";
  Expect(RunWith(drawn, used), Outcome::OK, "");
  Expect(RunWith("self.t = torch.softmax(torch.randn(64), 0)", "pass"), Outcome::RUNTIME_COMPUTE,
         "the constructor computes on its weights with aten::_softmax");
}

TEST_F(ClientRunTest, KernelErrorsNameTheirLine) {
  std::string source = absl::StrReplaceAll(kCandidate, {{"INIT", "pass"}, {"LAST", "pass"}});
  const ExecResult outside =
      Run(absl::StrReplaceAll(source, {{"tl.load(x + at, mask=i < n)", "tl.load(x + at + 512)"}}));
  EXPECT_EQ(outside.outcome().reason(), Outcome::OUT_OF_BOUNDS) << outside.ShortDebugString();
  EXPECT_THAT(outside.outcome().message(), HasSubstr("line 7"));
  const ExecResult refused =
      Run(absl::StrReplaceAll(source, {{"tl.where(v > 0", "tl.wher(v > 0"}}));
  EXPECT_EQ(refused.outcome().reason(), Outcome::COMPILE_ERROR) << refused.ShortDebugString();
  EXPECT_FALSE(refused.compiled());
}

TEST_F(ClientRunTest, EndsOfTheProcess) {
  Expect(RunWith("import os; os._exit(3)", "pass"), Outcome::EXITED, "exit code 3");
  Expect(RunWith("pass", "raise ValueError('so')"), Outcome::RUNTIME_ERROR, "ValueError: so");
  Expect(RunWith("raise ValueError('so')", "pass"), Outcome::CONSTRUCT_ERROR, "line 12");
  Expect(Run("import no_such_module\n"), Outcome::IMPORT_ERROR, "no_such_module");
  Expect(Run("x = bytearray(1 << 60)\n"), Outcome::OUT_OF_MEMORY, "line 1: MemoryError");
  ExecRequest request = MakeExecRequest(
      absl::StrReplaceAll(kCandidate, {{"INIT", "pass"}, {"LAST", "while True: pass"}}), kReference,
      /*seconds=*/2);
  EXPECT_EQ(RunOrFail(backend_, request).outcome().reason(), Outcome::TIMEOUT);
}

TEST_F(ClientRunTest, DecorationIsSeen) {
  const std::string reference = absl::StrReplaceAll(
      kReference, {{"return torch.relu(x) * self.w", "return x.reshape(64, 8)"}});
  const std::string candidate = absl::StrReplaceAll(
      kCandidate,
      {{"INIT", "pass"}, {"LAST", "y = x.clone()"}, {"return y", "return y.view(64, 8)"}});
  Expect(Run(candidate, reference), Outcome::RUNTIME_COMPUTE, "no kernel wrote");
}

TEST_F(ClientRunTest, OutputsInOneMemoryAreSeenByRobustRules) {
  const std::string reference = absl::StrReplaceAll(
      kReference,
      {{"return torch.relu(x) * self.w", "y = torch.relu(x) * self.w; return y, y.clone()"}});
  const std::string candidate = absl::StrReplaceAll(
      kCandidate, {{"INIT", "pass"}, {"LAST", "pass"}, {"return y", "return y, y"}});
  EXPECT_EQ(Run(candidate, reference, RULES_ROBUST).mismatch().kind(), "shared_memory");
  Expect(Run(candidate, reference, RULES_STRICT), Outcome::OK, "");
}

}  // namespace
}  // namespace tritonrl
