// The robust rules on real candidates in the real processes: faults that the strict rules miss, and
// honest candidates that must pass.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "exec/testing/native_suite.h"
#include "exec/testing/run_request.h"

namespace tritonrl {
namespace {

class RobustTest : public NativeSuite {
 protected:
  ExecResult Run(const std::string& reference, const std::string& candidate,
                 Rules rules = RULES_ROBUST) {
    ExecRequest request = MakeExecRequest(candidate, reference, /*seconds=*/30);
    request.set_rules(rules);
    return RunOrFail(backend_, request);
  }
};

// Returns a reference whose forward computes the expression `forward` of x (and y).
std::string Reference(const std::string& forward, const std::string& inputs,
                      const std::string& more = "") {
  return absl::StrCat(
      "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x, y=None):\n",
      "        return ", forward, "\ndef get_inputs():\n    return ", inputs,
      "\ndef get_init_inputs():\n    return []\n", more);
}

// Row sums, block by block; the test replaces ACC by the accumulator's type.
constexpr char kRowSum[] = R"py(
import torch, triton, triton.language as tl
@triton.jit
def row_sum(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32).to(ACC)
    for k in range(0, n, BLOCK):
        i = k + tl.arange(0, BLOCK)
        acc += tl.load(x + row * n + i, mask=i < n, other=0.0).to(ACC)
    tl.store(y + row, tl.sum(acc, 0).to(tl.float32))
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device)
        row_sum[(x.shape[0],)](x, y, x.shape[1], BLOCK=64)
        return y
)py";

// A GEMM in one program; the test replaces LOAD by the arguments of tl.dot.
constexpr char kDot[] = R"py(
import torch, triton, triton.language as tl
@triton.jit
def dot(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BK: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    acc = tl.zeros((M, N), dtype=tl.float32)
    for k in range(0, K, BK):
        i = k + tl.arange(0, BK)
        p = tl.load(a + m[:, None] * K + i[None, :])
        q = tl.load(b + i[:, None] * N + n[None, :])
        acc += tl.dot(LOAD)
    tl.store(c + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty))
class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype, device=a.device)
        dot[(1,)](a, b, c, a.shape[0], b.shape[1], a.shape[1], BK=64)
        return c
)py";

std::string RowSum(const char* type) { return absl::StrReplaceAll(kRowSum, {{"ACC", type}}); }
std::string Dot(const char* load) { return absl::StrReplaceAll(kDot, {{"LOAD", load}}); }

TEST_F(RobustTest, SumsInHalfPrecisionAreSeen) {
  const std::string reference = Reference("x.sum(1)", "[torch.randn(4, 2048) * 0.05]");
  EXPECT_EQ(Run(reference, RowSum("tl.float16"), RULES_STRICT).outcome().reason(), Outcome::OK);
  const ExecResult result = Run(reference, RowSum("tl.float16"));
  EXPECT_EQ(result.outcome().reason(), Outcome::MISMATCH) << result.DebugString();
  EXPECT_EQ(result.mismatch().trial_name(), "random");
  EXPECT_GT(result.mismatch().error(), result.mismatch().tolerance());
  EXPECT_GT(result.mismatch().max_error(), 5 * result.mismatch().tolerance());
  EXPECT_GT(result.mismatch().tolerance(), 0);
  EXPECT_NE(result.outcome().message().find("in float64 within"), std::string::npos)
      << result.outcome().message();
  const ExecResult honest = Run(reference, RowSum("tl.float32"));
  EXPECT_EQ(honest.outcome().reason(), Outcome::OK) << honest.DebugString();
  EXPECT_LT(honest.robust().worst_share(), 0.7);
  EXPECT_GT(honest.robust().worst_share(), 0);
}

TEST_F(RobustTest, ZerosWhereResultsAreTinyAreSeen) {
  const std::string reference = Reference("torch.softmax(x, -1) * 1e-3", "[torch.randn(4, 256)]");
  const std::string honest =
      absl::StrReplaceAll(kSoftmaxCandidate, {{"tl.sum(e, 0)", "tl.sum(e, 0) * 1e-3"}});
  const std::string zeros = absl::StrReplaceAll(kSoftmaxCandidate, {{"e / tl.sum(e, 0)", "e * 0"}});
  EXPECT_EQ(Run(reference, zeros, RULES_STRICT).outcome().reason(), Outcome::OK);
  EXPECT_EQ(Run(reference, zeros).outcome().reason(), Outcome::MISMATCH);
  const ExecResult result = Run(reference, honest);
  EXPECT_EQ(result.outcome().reason(), Outcome::OK) << result.DebugString();
}

TEST_F(RobustTest, HonestGemmsPassAndLossOfPrecisionDoesNot) {
  const std::string reference =
      Reference("x @ y", "[torch.randn(32, 256) * 0.1, torch.randn(256, 32) * 0.1]");
  // Operands at tl.dot's default precision, in IEEE float32, in half precision, and with mantissas
  // truncated to tf32's 10 bits.
  for (const char* load :
       {"p, q", "p, q, input_precision='ieee'", "p.to(tl.float16), q.to(tl.float16)",
        "(p.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True), "
        "(q.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)"}) {
    const ExecResult result = Run(reference, Dot(load));
    EXPECT_EQ(result.outcome().reason(), Outcome::OK) << load << result.DebugString();
  }
  const char* bfloat = "p.to(tl.bfloat16), q.to(tl.bfloat16)";
  EXPECT_EQ(Run(reference, Dot(bfloat), RULES_STRICT).outcome().reason(), Outcome::OK);
  EXPECT_EQ(Run(reference, Dot(bfloat)).outcome().reason(), Outcome::MISMATCH);
  // If the task itself is in bfloat16, an honest GEMM may use bfloat16 too.
  const std::string half = Reference(
      "x @ y", "[torch.randn(32, 256).bfloat16() * 0.1, torch.randn(256, 32).bfloat16() * 0.1]");
  const ExecResult result = Run(half, Dot("p, q"));
  EXPECT_EQ(result.outcome().reason(), Outcome::OK) << result.DebugString();
}

TEST_F(RobustTest, FurtherInputsFindWhatRandomOnesDoNot) {
  // A softmax that does not subtract the maximum overflows in exp for large inputs.
  const std::string naive = absl::StrReplaceAll(
      kSoftmaxCandidate, {{"tl.exp(v - tl.max(v, 0))", "tl.where(i < n, tl.exp(v), 0.0)"}});
  EXPECT_EQ(Run(kSoftmaxReference, naive, RULES_STRICT).outcome().reason(), Outcome::OK);
  const ExecResult result = Run(kSoftmaxReference, naive);
  EXPECT_EQ(result.outcome().reason(), Outcome::MISMATCH) << result.DebugString();
  EXPECT_EQ(result.mismatch().trial_name(), "heavy_tailed");
  EXPECT_NE(result.outcome().message().find("(inputs: heavy_tailed)"), std::string::npos)
      << result.outcome().message();
  const ExecResult honest = Run(kSoftmaxReference, kSoftmaxCandidate);
  EXPECT_EQ(honest.outcome().reason(), Outcome::OK) << honest.DebugString();
  EXPECT_EQ(honest.trials_run(), 11);
  EXPECT_EQ(honest.robust().trial_names_size(), 11);
  EXPECT_EQ(Run(kSoftmaxReference, kSoftmaxCandidate, RULES_STRICT).trials_run(), 5);
}

TEST_F(RobustTest, InputsOfUnevenSizeFindWhatTrustsAPrefix) {
  // The maximum is subtracted only where the beginning of a row is large.
  const std::string prefix = absl::StrReplaceAll(
      kSoftmaxCandidate, {{"tl.max(v, 0)",
                           "tl.where(tl.max(tl.where(i < 48, tl.abs(v), 0.0), 0) < 20, 0.0, "
                           "tl.max(v, 0))"}});
  const ExecResult result = Run(kSoftmaxReference, prefix);
  EXPECT_EQ(result.outcome().reason(), Outcome::MISMATCH) << result.DebugString();
  EXPECT_EQ(result.mismatch().trial_name(), "stretch");
}

// relu(x * scale + bias), with parameters of ones and zeros.
constexpr char kAffineReference[] = R"py(
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(64))
        self.bias = torch.nn.Parameter(torch.zeros(64))
        self.register_buffer("calls", torch.zeros(()))
    def forward(self, x):
        self.calls += 1
        return torch.relu(x * FORM + self.bias) * self.calls.clamp(max=1)
def get_inputs():
    return [torch.randn(8, 64)]
def get_init_inputs():
    return []
)py";
constexpr char kAffineCandidate[] = R"py(
import torch, triton, triton.language as tl
@triton.jit
def affine(x, s, b, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * n + tl.arange(0, BLOCK)
    j = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=j < n)
    if USE:
        v = v * tl.load(s + j, mask=j < n) + tl.load(b + j, mask=j < n)
    tl.store(y + i, tl.maximum(v, 0.0), mask=j < n)
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(64))
        self.bias = torch.nn.Parameter(torch.zeros(64))
    def forward(self, x):
        y = torch.empty_like(x)
        affine[(x.shape[0],)](x, self.scale, self.bias, y, 64, BLOCK=64)
        return y
)py";

TEST_F(RobustTest, ParametersOfOnesAndZerosHaveToBeUsed) {
  const std::string reference = absl::StrReplaceAll(kAffineReference, {{"FORM", "self.scale"}});
  const std::string honest = absl::StrReplaceAll(kAffineCandidate, {{"USE", "True"}});
  const std::string unit = absl::StrReplaceAll(kAffineCandidate, {{"USE", "False"}});
  const ExecResult right = Run(reference, honest);
  EXPECT_EQ(right.outcome().reason(), Outcome::OK) << right.DebugString();
  EXPECT_EQ(right.robust().left_out_size(), 0);
  EXPECT_EQ(Run(reference, unit).outcome().reason(), Outcome::MISMATCH);
  EXPECT_EQ(Run(reference, unit, RULES_STRICT).outcome().reason(), Outcome::OK);
  // A reference that has no finite result with other parameters keeps its own.
  const std::string only_ones = absl::StrReplaceAll(
      kAffineReference, {{"FORM", "torch.where(self.scale == 1, 1.0, float('nan'))"}});
  const ExecResult result = Run(only_ones, unit);
  EXPECT_EQ(result.outcome().reason(), Outcome::OK) << result.DebugString();
  ASSERT_EQ(result.robust().left_out_size(), 1);
  EXPECT_NE(result.robust().left_out(0).find("parameters other than 0 and 1"), std::string::npos);
}

TEST_F(RobustTest, ATasksOwnShapesAreTried) {
  const std::string shapes =
      "def get_input_variants():\n    return [[torch.randn(3, 77)], [torch.randn(1, 200)]]\n";
  const std::string reference = absl::StrCat(kSoftmaxReference, shapes);
  const ExecResult honest = Run(reference, kSoftmaxCandidate);
  EXPECT_EQ(honest.outcome().reason(), Outcome::OK) << honest.DebugString();
  EXPECT_EQ(honest.robust().trial_names(12), "shape 2");
  // This candidate is right only for the shape of get_inputs().
  const std::string fixed =
      absl::StrReplaceAll(kSoftmaxCandidate, {{"x.shape[1], BLOCK", "200, BLOCK"}});
  EXPECT_EQ(Run(kSoftmaxReference, fixed).outcome().reason(), Outcome::OK);
  const ExecResult result = Run(reference, fixed);
  EXPECT_NE(result.outcome().reason(), Outcome::OK) << result.DebugString();
  EXPECT_EQ(result.outcome().status(), Outcome::STATUS_CANDIDATE_FAILED);
  const ExecResult broken =
      Run(absl::StrCat(kSoftmaxReference, "def get_input_variants():\n    return [[1 / 0]]\n"),
          kSoftmaxCandidate);
  EXPECT_EQ(broken.outcome().reason(), Outcome::REFERENCE_FAILED) << broken.DebugString();
  EXPECT_NE(broken.outcome().message().find("get_input_variants()"), std::string::npos)
      << broken.outcome().message();
  // The strict rules ignore the further shapes.
  EXPECT_EQ(Run(reference, fixed, RULES_STRICT).outcome().reason(), Outcome::OK);
}

TEST_F(RobustTest, OutputsInOneMemoryAreSeen) {
  const std::string reference = Reference("(x * 2, x * 2)", "[torch.randn(8, 64)]");
  const std::string candidate = R"py(
import torch, triton, triton.language as tl
@triton.jit
def twice(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        both = torch.empty((2, *x.shape), device=x.device)
        for y in both:
            twice[(2,)](x, y, x.numel(), BLOCK=256)
        return RESULT
)py";
  const auto with = [&](const char* result) {
    return absl::StrReplaceAll(candidate, {{"RESULT", result}});
  };
  EXPECT_EQ(Run(reference, with("both[0], both[1]")).outcome().reason(), Outcome::OK);
  const ExecResult result = Run(reference, with("both[0], both[0]"));
  EXPECT_EQ(result.outcome().reason(), Outcome::MISMATCH) << result.DebugString();
  EXPECT_EQ(result.mismatch().kind(), "shared_memory");
  EXPECT_EQ(Run(reference, with("both[0], both[0]"), RULES_STRICT).outcome().reason(), Outcome::OK);
}

TEST_F(RobustTest, OutputsWithoutFloat64AreComparedAsInThePaper) {
  const std::string reference = Reference(
      "x + torch.nn.functional.dropout(x, 0.5, training=True) * 0", "[torch.randn(8, 64)]");
  const std::string candidate = R"py(
import torch, triton, triton.language as tl
@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 1.001, mask=i < n)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        copy[(2,)](x, y, x.numel(), BLOCK=256)
        return y
)py";
  const ExecResult result = Run(reference, candidate);
  EXPECT_EQ(result.outcome().reason(), Outcome::OK) << result.DebugString();
  ASSERT_EQ(result.robust().notes_size(), 1);
  EXPECT_NE(result.robust().notes(0).find("random numbers"), std::string::npos);
  EXPECT_FALSE(result.robust().has_worst_share());
  // Without dropout there is a float64 result, and an error of 0.1 % exceeds the tolerance.
  EXPECT_EQ(Run(Reference("x * 1", "[torch.randn(8, 64)]"), candidate).outcome().reason(),
            Outcome::MISMATCH);
}

// An honest candidate searches its own process for the names of rules and variants. Its kernel runs
// on inputs of another shape too.
TEST_F(RobustTest, NothingTellsACandidateItsModeOrTheVariant) {
  const std::string search = R"py(
import gc
WORDS = [a + b for a, b in (("rob", "ust"), ("heavy", "_tailed"), ("shif", "ted"), ("variant", "_seeds"),
                            ("sla", "ck"), ("get_input", "_variants"))]
def search():
    found = set()
    for thing in gc.get_objects():
        if isinstance(thing, dict) and "task_id" in thing:
            found |= {word for word in WORDS if word in repr(thing)}
            found.add("job")
    print("FOUND", sorted(found), flush=True)
)py";
  const std::string spy = absl::StrReplaceAll(absl::StrCat(search, kSoftmaxCandidate),
                                              {{"return y", "search(); return y"}});
  const std::string reference = absl::StrCat(
      kSoftmaxReference, "def get_input_variants():\n    return [[torch.randn(3, 77)]]\n");
  const ExecResult result = Run(reference, spy);
  EXPECT_EQ(result.outcome().reason(), Outcome::OK) << result.DebugString();
  const std::vector<std::string> told = absl::StrSplit(result.output(), '\n', absl::SkipEmpty());
  EXPECT_EQ(std::set<std::string>(told.begin(), told.end()),
            std::set<std::string>{"FOUND ['job']"});
  EXPECT_GE(told.size(), 3u);
}

}  // namespace
}  // namespace tritonrl
