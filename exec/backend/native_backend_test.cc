// Every kind of outcome of a candidate, in the real processes and sandbox.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "exec/backend/backend_factory.h"
#include "exec/testing/native_suite.h"
#include "exec/testing/run_request.h"

namespace tritonrl {
namespace {

class NativeBackendTest : public NativeSuite {
 protected:
  static ExecResult Run(const std::string& candidate,
                        const std::string& reference = kSoftmaxReference) {
    return RunOrFail(backend_, MakeExecRequest(candidate, reference));
  }

  // Runs the honest candidate with `from` replaced by `to`.
  ExecResult RunChanged(const char* from, const char* to) {
    const std::string changed = absl::StrReplaceAll(kSoftmaxCandidate, {{from, to}});
    EXPECT_NE(changed, kSoftmaxCandidate);
    return Run(changed);
  }
};

TEST_F(NativeBackendTest, AnHonestKernelIsCorrectAndItsTimeModelled) {
  const ExecResult result = Run(kSoftmaxCandidate);
  EXPECT_EQ(result.outcome().reason(), Outcome::OK) << result.DebugString();
  EXPECT_TRUE(result.compiled());
  EXPECT_TRUE(result.correct());
  EXPECT_EQ(result.trials_run(), 5);
  EXPECT_TRUE(result.modelled());
  EXPECT_GT(result.speedup(), 0);
  ASSERT_EQ(result.launches_size(), 1);
  EXPECT_EQ(result.launches(0).name(), "softmax");
  EXPECT_EQ(result.launches(0).grid(0), 64);
  EXPECT_EQ(result.launches(0).load_bytes(), 64 * 200 * 4);
  EXPECT_EQ(result.launches(0).store_bytes(), 64 * 200 * 4);
}

TEST_F(NativeBackendTest, TheSameSeedGivesTheSameResult) {
  const ExecResult a = Run(kSoftmaxCandidate);
  const ExecResult b = Run(kSoftmaxCandidate);
  EXPECT_EQ(a.max_error(), b.max_error());
  EXPECT_EQ(a.speedup(), b.speedup());
}

TEST_F(NativeBackendTest, TheReferenceRunsOncePerTaskAndSeed) {
  const std::string reference = absl::StrCat("# once\n", kSoftmaxReference);
  const ReferenceCache::Counts before = backend_->reference_counts();
  EXPECT_FALSE(Run(kSoftmaxCandidate, reference).reference_cached());
  EXPECT_TRUE(Run("class Other: pass\n", reference).reference_cached());
  EXPECT_TRUE(Run(kSoftmaxCandidate, reference).reference_cached());
  const ReferenceCache::Counts after = backend_->reference_counts();
  EXPECT_EQ(after.runs - before.runs, 1);
  EXPECT_EQ(after.hits - before.hits, 2);
  EXPECT_GT(after.bytes, before.bytes + 5 * 2 * 64 * 200 * 4);
}

TEST_F(NativeBackendTest, TheReferenceAloneCanBeRun) {
  ExecRequest request;
  request.set_reference_source(kSoftmaxReference);
  request.set_reference_only(true);
  const auto result = backend_->Run(request, absl::Now() + absl::Seconds(60));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outcome().reason(), Outcome::OK) << result->DebugString();
  EXPECT_FALSE(result->has_correct());
  EXPECT_FALSE(result->has_compiled());
  ASSERT_EQ(result->reference_ops_size(), 1);
}

TEST_F(NativeBackendTest, KindsOfMismatch) {
  EXPECT_EQ(RunChanged("return y", "return y.view(-1)").mismatch().kind(), "shape");
  EXPECT_EQ(RunChanged("return y", "return y.half()").mismatch().kind(), "dtype");
  EXPECT_EQ(RunChanged("return y", "return y, y").mismatch().kind(), "count");
  EXPECT_EQ(RunChanged("return y", "return None").mismatch().kind(), "type");
  EXPECT_EQ(RunChanged("return y", "x.copy_(y); return y").mismatch().kind(), "input_changed");
  EXPECT_EQ(RunChanged("(x.shape[0],)", "(x.shape[0] // 2,)").mismatch().kind(), "nan");
}

TEST_F(NativeBackendTest, WithoutAProgramTheKernelMakesNothing) {
  const ExecResult result = RunChanged("(x.shape[0],)", "(0,)");
  EXPECT_EQ(result.outcome().reason(), Outcome::RUNTIME_COMPUTE) << result.ShortDebugString();
}

TEST_F(NativeBackendTest, WhatIsKeptFromAnEarlierCallIsWrong) {
  // In Python the second call is that on the second input.
  const std::string result_kept =
      absl::StrReplaceAll(kSoftmaxCandidate, {{"return y", "return KEPT.setdefault(x.shape, y)"},
                                              {"@triton.jit", "KEPT = {}\n@triton.jit"}});
  const std::string calls_counted = absl::StrReplaceAll(
      kSoftmaxCandidate, {{"@triton.jit", "CALLS = []\n@triton.jit"},
                          {"y, n, BLOCK", "y, n, calls, BLOCK"},
                          {"tl.sum(e, 0)", "tl.sum(e, 0) / calls"},
                          {"y = torch.empty_like(x)", "y = torch.empty_like(x); CALLS.append(0)"},
                          {"x.shape[1], BLOCK", "x.shape[1], len(CALLS), BLOCK"}});
  for (const std::string& candidate : {result_kept, calls_counted}) {
    const ExecResult result = Run(candidate);
    EXPECT_EQ(result.outcome().reason(), Outcome::MISMATCH) << result.DebugString();
    EXPECT_EQ(result.mismatch().trial(), 1);
    EXPECT_EQ(result.trials_run(), 2);
  }
}

TEST_F(NativeBackendTest, WrongValuesAreAMismatch) {
  const ExecResult result = RunChanged("e / tl.sum(e, 0)", "e");
  EXPECT_EQ(result.outcome().reason(), Outcome::MISMATCH);
  EXPECT_TRUE(result.compiled());
  EXPECT_FALSE(result.correct());
  EXPECT_EQ(result.mismatch().kind(), "value");
  EXPECT_GT(result.mismatch().bad_elements(), 0);
  EXPECT_GT(result.mismatch().max_error(), 1e-2);
  EXPECT_EQ(result.trials_run(), 1);
}

TEST_F(NativeBackendTest, WeightsBuffersAndSeveralResults) {
  const std::string reference = R"py(
import torch
class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = torch.nn.Linear(n, 8)
        self.register_buffer("calls", torch.zeros(1))
    def forward(self, x, scale):
        self.calls += 1
        return {"y": self.linear(x) * scale, "n": [x.shape[0], self.calls.clone()]}
def get_inputs(): return [torch.randn(4, 16), 2.5]
def get_init_inputs(): return [16]
)py";
  ExecRequest request = MakeExecRequest(
      absl::StrReplaceAll(reference, {{"class Model(", "class ModelNew("}}), reference);
  request.set_torch_may_compute(true);
  const ExecResult result = RunOrFail(backend_, request);
  EXPECT_TRUE(result.correct()) << result.ShortDebugString();
  request.set_candidate_source(
      absl::StrReplaceAll(request.candidate_source(), {{"self.calls += 1", "pass"}}));
  EXPECT_EQ(RunOrFail(backend_, request).mismatch().kind(), "value");
}

TEST_F(NativeBackendTest, TritonsErrorsAreCompileErrors) {
  const ExecResult result = RunChanged("tl.arange(0, BLOCK)", "tl.arange(0, BLOCK + 1)");
  EXPECT_EQ(result.outcome().reason(), Outcome::COMPILE_ERROR);
  EXPECT_FALSE(result.outcome().detail().empty());
}

TEST_F(NativeBackendTest, ErrorsOfTheProgramNameTheirLine) {
  EXPECT_EQ(Run("def broken(:\n").outcome().reason(), Outcome::IMPORT_ERROR);
  EXPECT_EQ(Run("class Other: pass\n").outcome().reason(), Outcome::NO_MODEL_NEW);
  const ExecResult result = RunChanged("y = torch.empty_like(x)", "y = torch.empty_like(z)");
  EXPECT_EQ(result.outcome().reason(), Outcome::RUNTIME_ERROR);
  EXPECT_EQ(result.outcome().line(), 12);
}

TEST_F(NativeBackendTest, ABrokenReferenceIsTheTasksFault) {
  const ExecResult result = Run(kSoftmaxCandidate, "import torch\n");
  EXPECT_EQ(result.outcome().reason(), Outcome::REFERENCE_FAILED);
  EXPECT_EQ(result.outcome().status(), Outcome::STATUS_TASK_FAILED);
}

TEST_F(NativeBackendTest, AHangEndsInATimeout) {
  const std::string program = absl::StrCat(kSoftmaxCandidate, "\nwhile True: pass\n");
  const std::string kernel =
      absl::StrReplaceAll(kSoftmaxCandidate, {{"row = tl.program_id(0)",
                                               "row = tl.program_id(0)\n"
                                               "    while tl.load(x) == tl.load(x):\n"
                                               "        tl.store(y, 0.0)"}});
  for (const std::string& candidate : {program, kernel}) {
    const ExecResult result =
        RunOrFail(backend_, MakeExecRequest(candidate, kSoftmaxReference, /*seconds=*/1));
    EXPECT_EQ(result.outcome().reason(), Outcome::TIMEOUT) << result.DebugString();
    EXPECT_EQ(result.outcome().status(), Outcome::STATUS_CANDIDATE_FAILED);
  }
  EXPECT_EQ(Run(kSoftmaxCandidate).outcome().reason(), Outcome::OK);
}

TEST_F(NativeBackendTest, RequestsWithoutSenseNameTheField) {
  ExecRequest request;
  request.set_task_id("t");
  auto result = backend_->Run(request, absl::Now());
  EXPECT_EQ(result.status().message(), "task t: reference_source is empty");
  request.set_reference_source("x");
  EXPECT_EQ(backend_->Run(request, absl::Now()).status().message(),
            "task t: candidate_source is empty");
  request.set_candidate_source("x");
  request.set_atol(-1);
  EXPECT_FALSE(backend_->Run(request, absl::Now()).ok());
}

}  // namespace
}  // namespace tritonrl
