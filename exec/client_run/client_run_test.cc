// Whole runs of candidates whose processes hold no data, in the real sandbox.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "exec/client_run/testing/scale_task.h"
#include "exec/testing/native_suite.h"
#include "exec/testing/run_request.h"

namespace tritonrl {
namespace {

using testing::HasSubstr;

class ClientRunTest : public NativeSuite {
 protected:
  static ExecResult Run(const std::string& candidate,
                        const std::string& reference = kScaleReference,
                        Rules rules = RULES_STRICT) {
    ExecRequest request = MakeExecRequest(candidate, reference);
    request.set_rules(rules);
    return RunOrFail(backend_, request);
  }
  // The candidate with statements in its constructor and at the end of forward.
  static ExecResult RunWith(const std::string& init, const std::string& last,
                            Rules rules = RULES_STRICT) {
    return Run(absl::StrReplaceAll(kScaleCandidate, {{"INIT", init}, {"LAST", last}}),
               kScaleReference, rules);
  }
};

TEST_F(ClientRunTest, AnHonestCandidateIsCorrect) {
  for (const Rules rules : {RULES_STRICT, RULES_ROBUST, RULES_PAPER}) {
    const ExecResult result = RunWith("pass", "pass", rules);
    ExpectOutcome(result, Outcome::OK, "");
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
      kScaleReference,
      {init, {"return []", "return [[], {'cfg': _mock_config(inner=_mock_config(n=64))}]"}});
  const ExecResult result =
      Run(head + absl::StrReplaceAll(kScaleCandidate, {init, {"INIT", "pass"}, {"LAST", "pass"}}),
          head + reference);
  ExpectOutcome(result, Outcome::OK, "");
  EXPECT_TRUE(result.correct()) << result.ShortDebugString();
}

TEST_F(ClientRunTest, OperatorsThatComputeAreRefusedWithTheirLine) {
  const ExecResult result = RunWith("pass", "y = y @ y.T @ y");
  ExpectOutcome(result, Outcome::RUNTIME_COMPUTE, "aten::mm computes on");
  EXPECT_EQ(result.outcome().line(), 17);
  ExpectOutcome(RunWith("pass", "y = torch.relu(y)"), Outcome::RUNTIME_COMPUTE, "aten::relu");
  ExpectOutcome(RunWith("pass", "y = torch.tensor(x.tolist())"), Outcome::RUNTIME_COMPUTE, "reads");
  ExpectOutcome(RunWith("pass", "y[:, :32] = 0; y = y + 0"), Outcome::RUNTIME_COMPUTE, "aten::add");
  // The result is right without it.
  ExpectOutcome(RunWith("pass",
                        "import contextlib\n"
                        "        with contextlib.suppress(Exception): torch.relu(y)"),
                Outcome::RUNTIME_COMPUTE,
                "aten::relu computes on 512 elements, which forward tried");
}

TEST_F(ClientRunTest, AWrongResultIsAMismatch) {
  const ExecResult result = RunWith("pass",
                                    "y = y.t().contiguous().t()[:, torch.arange(63, -1, -1)"
                                    ".tolist()[0]:]");
  EXPECT_EQ(result.mismatch().kind(), "shape") << result.ShortDebugString();
  EXPECT_EQ(
      RunWith("pass", "w = y.clone(); scale[(8,)](w, self.w, y, 64, BLOCK=64)").mismatch().kind(),
      "value");
  EXPECT_EQ(RunWith("pass", "y = y.half()").mismatch().kind(), "dtype");
  EXPECT_EQ(RunWith("pass", "x.zero_()").mismatch().kind(), "input_changed");
  EXPECT_EQ(RunWith("pass", "x.zero_()", RULES_PAPER).outcome().reason(), Outcome::OK);
}

// Else a program without a kernel's work would count as a valid one with a mistake.
TEST_F(ClientRunTest, WhoComputesIsSaidOfWrongResultsToo) {
  const ExecResult result = RunWith("pass", "y = x.flip(0)");
  ExpectOutcome(result, Outcome::RUNTIME_COMPUTE, "");
  EXPECT_FALSE(result.correct());
  ExpectOutcome(RunWith("pass", "y = x.clone()"), Outcome::RUNTIME_COMPUTE,
                "no kernel wrote any of the");
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
  ExpectOutcome(RunWith(drawn, used), Outcome::OK, "");
  ExpectOutcome(RunWith("self.t = torch.softmax(torch.randn(64), 0)", "pass"),
                Outcome::RUNTIME_COMPUTE,
                "the constructor computes on its weights with aten::_softmax");
}

TEST_F(ClientRunTest, KernelErrorsNameTheirLine) {
  std::string source = absl::StrReplaceAll(kScaleCandidate, {{"INIT", "pass"}, {"LAST", "pass"}});
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
  ExpectOutcome(RunWith("import os; os._exit(3)", "pass"), Outcome::EXITED, "exit code 3");
  ExpectOutcome(RunWith("pass", "raise ValueError('so')"), Outcome::RUNTIME_ERROR,
                "ValueError: so");
  ExpectOutcome(RunWith("raise ValueError('so')", "pass"), Outcome::CONSTRUCT_ERROR, "line 12");
  ExpectOutcome(Run("import no_such_module\n"), Outcome::IMPORT_ERROR, "no_such_module");
  ExpectOutcome(Run("x = bytearray(1 << 60)\n"), Outcome::OUT_OF_MEMORY, "line 1: MemoryError");
  ExpectOutcome(RunWith("pass", "z = torch.empty(1 << 40, device=x.device)"),
                Outcome::OUT_OF_MEMORY, "CUDA out of memory");
  ExecRequest request = MakeExecRequest(
      absl::StrReplaceAll(kScaleCandidate, {{"INIT", "pass"}, {"LAST", "while True: pass"}}),
      kScaleReference,
      /*seconds=*/2);
  EXPECT_EQ(RunOrFail(backend_, request).outcome().reason(), Outcome::TIMEOUT);
}

// Kernels read bools, and write them.
TEST_F(ClientRunTest, BoolsAreArgumentsAndOutputs) {
  const ExecResult result = Run(R"py(
import torch, triton, triton.language as tl
@triton.jit
def choose(x, m, y, z, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v, chosen = tl.load(x + i), tl.load(m + i)
    tl.store(y + i, (v > 0) ^ chosen)
    tl.store(z + i, tl.where(chosen, v, 0.0))
class ModelNew(torch.nn.Module):
    def forward(self, x, m):
        y, z = torch.empty_like(m), torch.empty_like(x)
        choose[(8,)](x, m, y, z, BLOCK=64)
        return y, z
)py",
                                R"py(
import torch
class Model(torch.nn.Module):
    def forward(self, x, m):
        return (x > 0) ^ m, x * m
def get_inputs():
    return [torch.randn(8, 64), torch.rand(8, 64) > 0.5]
def get_init_inputs():
    return []
)py");
  ExpectOutcome(result, Outcome::OK, "");
  EXPECT_TRUE(result.correct()) << result.ShortDebugString();
}

// What a descriptor of the host reads outside of its tensor: NaN, or zeros if it does not ask for
// it.
TEST_F(ClientRunTest, DescriptorsPadWithNan) {
  const auto run = [](const char* padding) {
    return Run(absl::StrReplaceAll(R"py(
import torch, triton, triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor
@triton.jit
def pad(x, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    v = x.load([0, 0])
    i = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(y + i, tl.where(v == v, tl.maximum(v, 0.0), 3.0))
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty((16, 64), device=x.device)
        descriptor = TensorDescriptor(x, list(x.shape), list(x.stride()), [16, 64], padding="PADDING")
        pad[(1,)](descriptor, y, 16, 64)
        return y
)py",
                                   {{"PADDING", padding}}),
               absl::StrReplaceAll(kScaleReference, {{"torch.relu(x) * self.w",
                                                      "torch.cat([torch.relu(x), x * 0 + 3])"}}));
  };
  ExpectOutcome(run("nan"), Outcome::OK, "");
  const ExecResult zeros = run("zero");
  EXPECT_EQ(zeros.mismatch().kind(), "value") << zeros.ShortDebugString();
  EXPECT_EQ(zeros.mismatch().bad_elements(), 8 * 64);
}

TEST_F(ClientRunTest, DecorationIsSeen) {
  const std::string reference = absl::StrReplaceAll(
      kScaleReference, {{"return torch.relu(x) * self.w", "return x.reshape(64, 8)"}});
  const std::string candidate = absl::StrReplaceAll(
      kScaleCandidate,
      {{"INIT", "pass"}, {"LAST", "y = x.clone()"}, {"return y", "return y.view(64, 8)"}});
  ExpectOutcome(Run(candidate, reference), Outcome::RUNTIME_COMPUTE, "no kernel wrote");
}

TEST_F(ClientRunTest, OutputsInOneMemoryAreSeenByRobustRules) {
  const std::string reference = absl::StrReplaceAll(
      kScaleReference,
      {{"return torch.relu(x) * self.w", "y = torch.relu(x) * self.w; return y, y.clone()"}});
  const std::string candidate = absl::StrReplaceAll(
      kScaleCandidate, {{"INIT", "pass"}, {"LAST", "pass"}, {"return y", "return y, y"}});
  EXPECT_EQ(Run(candidate, reference, RULES_ROBUST).mismatch().kind(), "shared_memory");
  ExpectOutcome(Run(candidate, reference, RULES_STRICT), Outcome::OK, "");
}

}  // namespace
}  // namespace tritonrl
