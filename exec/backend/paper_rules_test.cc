// The paper's rules on real candidates in the real processes: what further checks of RULES_STRICT
// refuse passes, and parameters come from the seed alone.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "exec/testing/native_suite.h"
#include "exec/testing/run_request.h"

namespace tritonrl {
namespace {

// A model with one parameter, drawn from the seed.
constexpr char kReference[] = R"py(
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(64))
    def forward(self, x):
        return x * self.w
def get_inputs():
    return [torch.randn(8, 64)]
def get_init_inputs():
    return []
)py";

// The candidate that computes it. `first` is run before the parameter is drawn, `last` before
// forward returns y.
std::string Candidate(const std::string& first, const std::string& last) {
  return absl::StrCat(R"py(
import torch, triton, triton.language as tl
@triton.jit
def scale(x, w, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * n + i
    tl.store(y + at, tl.load(x + at, mask=i < n) * tl.load(w + i, mask=i < n), mask=i < n)
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        )py",
                      first, R"py(
        self.w = torch.nn.Parameter(torch.randn(64))
    def forward(self, x):
        self.calls += 1
        y = torch.empty_like(x)
        scale[(x.shape[0],)](x, self.w, y, x.shape[1], BLOCK=64)
        )py",
                      last, "\n        return y\n");
}

class PaperRulesTest : public NativeSuite {
 protected:
  ExecResult Run(const std::string& candidate, Rules rules) {
    ExecRequest request = MakeExecRequest(candidate, kReference, /*seconds=*/30);
    request.set_rules(rules);
    request.set_skip_ablation(true);
    return RunOrFail(backend_, request);
  }
};

TEST_F(PaperRulesTest, AnHonestCandidateIsRight) {
  for (const Rules rules : {RULES_PAPER, RULES_STRICT}) {
    const ExecResult result = Run(Candidate("pass", "pass"), rules);
    EXPECT_EQ(result.outcome().reason(), Outcome::OK) << result.ShortDebugString();
    EXPECT_EQ(result.trials_run(), 5);
  }
}

TEST_F(PaperRulesTest, AWrongResultIsWrong) {
  const char* again = "scale[(x.shape[0],)](y, self.w, y, x.shape[1], BLOCK=64)";
  EXPECT_EQ(Run(Candidate("pass", again), RULES_PAPER).outcome().reason(), Outcome::MISMATCH);
  // As by other rules, who computes is asked.
  EXPECT_EQ(Run(Candidate("pass", "y += 1"), RULES_PAPER).outcome().reason(),
            Outcome::RUNTIME_COMPUTE);
}

TEST_F(PaperRulesTest, OnlyTheFirstCallOnAnInputCounts) {
  // A kernel counts its calls and adds their number. The program puts the count back where it sees
  // a second call, which it does not when the first is repeated.
  const std::string candidate =
      absl::StrCat(Candidate("self.count = torch.zeros(1)",
                             "if self.calls > 1: self.count.zero_()\n"
                             "        add_count[(1,)](y, self.count, BLOCK=512)"),
                   R"py(
@triton.jit
def add_count(y, count, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    calls = tl.load(count)
    tl.store(y + i, tl.load(y + i) + calls)
    tl.store(count, calls + 1)
)py");
  const ExecResult strict = Run(candidate, RULES_STRICT);
  EXPECT_EQ(strict.outcome().reason(), Outcome::MISMATCH);
  EXPECT_TRUE(absl::StrContains(strict.outcome().message(), "trial 1 of 5, called once more"))
      << strict.outcome().message();
  EXPECT_EQ(Run(candidate, RULES_PAPER).outcome().reason(), Outcome::OK);
}

TEST_F(PaperRulesTest, ParametersComeFromTheSeedAlone) {
  // A draw before it gives the parameter other values, which RULES_STRICT replaces by the
  // reference's.
  const std::string candidate = Candidate("torch.rand(3)", "pass");
  EXPECT_EQ(Run(candidate, RULES_STRICT).outcome().reason(), Outcome::OK);
  EXPECT_EQ(Run(candidate, RULES_PAPER).outcome().reason(), Outcome::MISMATCH);
}

}  // namespace
}  // namespace tritonrl
