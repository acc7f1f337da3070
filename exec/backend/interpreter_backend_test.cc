// Every kind of outcome of a kernel, in the real runner and sandbox.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "exec/backend/backend_factory.h"
#include "exec/testing/interpreter_suite.h"
#include "exec/testing/run_request.h"

namespace tritonrl {
namespace {

class InterpreterBackendTest : public InterpreterSuite {
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

TEST_F(InterpreterBackendTest, AnHonestKernelIsCorrectAndItsTimeModelled) {
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

TEST_F(InterpreterBackendTest, TheSameSeedGivesTheSameResult) {
  const ExecResult a = Run(kSoftmaxCandidate);
  const ExecResult b = Run(kSoftmaxCandidate);
  EXPECT_EQ(a.max_error(), b.max_error());
  EXPECT_EQ(a.speedup(), b.speedup());
}

TEST_F(InterpreterBackendTest, TheReferenceRunsOncePerTaskAndSeed) {
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

TEST_F(InterpreterBackendTest, TheReferenceAloneCanBeRun) {
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

TEST_F(InterpreterBackendTest, KindsOfMismatch) {
  EXPECT_EQ(RunChanged("return y", "return y.view(-1)").mismatch().kind(), "shape");
  EXPECT_EQ(RunChanged("return y", "return y.half()").mismatch().kind(), "dtype");
  EXPECT_EQ(RunChanged("return y", "return y, y").mismatch().kind(), "count");
  EXPECT_EQ(RunChanged("return y", "return None").mismatch().kind(), "type");
  EXPECT_EQ(RunChanged("return y", "return y.to_sparse()").mismatch().kind(), "type");
  EXPECT_EQ(RunChanged("return y", "x.copy_(y); return y").mismatch().kind(), "input_changed");
  EXPECT_EQ(RunChanged("(x.shape[0],)", "(0,)").mismatch().kind(), "nan");
  EXPECT_EQ(RunChanged("(x.shape[0],)", "(x.shape[0] // 2,)").mismatch().kind(), "nan");
}

TEST_F(InterpreterBackendTest, WhatIsKeptFromAnEarlierCallIsWrong) {
  const std::string by_address = absl::StrReplaceAll(
      kSoftmaxCandidate, {{"return y", "return KEPT.setdefault(x.data_ptr(), y)"},
                          {"@triton.jit", "KEPT = {}\n@triton.jit"}});
  ExecResult result = Run(by_address);
  EXPECT_EQ(result.outcome().reason(), Outcome::MISMATCH) << result.DebugString();
  EXPECT_EQ(result.mismatch().trial(), 1);
  EXPECT_EQ(result.trials_run(), 2);
  const std::string once = absl::StrReplaceAll(
      kSoftmaxCandidate, {{"return y", "CALLS.append(0); return y / len(CALLS)"},
                          {"@triton.jit", "CALLS = []\n@triton.jit"}});
  result = Run(once);
  EXPECT_EQ(result.outcome().reason(), Outcome::MISMATCH);
  EXPECT_NE(result.outcome().message().find("trial 1 of 5, called once more"), std::string::npos)
      << result.outcome().message();
}

TEST_F(InterpreterBackendTest, WrongValuesAreAMismatch) {
  const ExecResult result = RunChanged("e / tl.sum(e, 0)", "e");
  EXPECT_EQ(result.outcome().reason(), Outcome::MISMATCH);
  EXPECT_TRUE(result.compiled());
  EXPECT_FALSE(result.correct());
  EXPECT_EQ(result.mismatch().kind(), "value");
  EXPECT_GT(result.mismatch().bad_elements(), 0);
  EXPECT_GT(result.mismatch().max_error(), 1e-2);
  EXPECT_EQ(result.trials_run(), 1);
}

TEST_F(InterpreterBackendTest, TritonsErrorsAreCompileErrors) {
  const ExecResult result = RunChanged("tl.arange(0, BLOCK)", "tl.arange(0, BLOCK + 1)");
  EXPECT_EQ(result.outcome().reason(), Outcome::COMPILE_ERROR);
  EXPECT_FALSE(result.outcome().detail().empty());
}

TEST_F(InterpreterBackendTest, ErrorsOfTheProgramNameTheirLine) {
  EXPECT_EQ(Run("def broken(:\n").outcome().reason(), Outcome::IMPORT_ERROR);
  EXPECT_EQ(Run("class Other: pass\n").outcome().reason(), Outcome::NO_MODEL_NEW);
  const ExecResult result = RunChanged("y = torch.empty_like(x)", "y = torch.empty_like(z)");
  EXPECT_EQ(result.outcome().reason(), Outcome::RUNTIME_ERROR);
  EXPECT_EQ(result.outcome().line(), 12);
}

TEST_F(InterpreterBackendTest, ABrokenReferenceIsTheTasksFault) {
  const ExecResult result = Run(kSoftmaxCandidate, "import torch\n");
  EXPECT_EQ(result.outcome().reason(), Outcome::REFERENCE_FAILED);
  EXPECT_EQ(result.outcome().status(), Outcome::STATUS_TASK_FAILED);
}

TEST_F(InterpreterBackendTest, AHangingKernelEndsInATimeout) {
  ExecRequest request;
  request.set_reference_source(kSoftmaxReference);
  request.set_candidate_source(std::string(kSoftmaxCandidate) + "\nwhile True: pass\n");
  request.mutable_limits()->set_wall_seconds(2);
  const auto result = backend_->Run(request, absl::Now() + absl::Seconds(60));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outcome().reason(), Outcome::TIMEOUT) << result->DebugString();
  EXPECT_EQ(result->outcome().status(), Outcome::STATUS_CANDIDATE_FAILED);
  EXPECT_EQ(Run(kSoftmaxCandidate).outcome().reason(), Outcome::OK);
}

TEST_F(InterpreterBackendTest, RequestsWithoutSenseNameTheField) {
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
