// What comes after the ordinary calls, between real processes with a fake runner: a candidate is
// right already, and nothing that happens here may take that away or be used to hide.
#include "exec/candidate/follow_up.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "exec/backend/backend_factory.h"
#include "exec/testing/pool_options.h"
#include "exec/testing/run_request.h"

namespace tritonrl {
namespace {

class FollowUpTest : public testing::Test {
 protected:
  // With times that are measured there is a profiled call as well.
  static void SetUpTestSuite() {
    auto backend = StartInterpreterBackend(FakePoolOptions(1));
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = backend->release();
    auto pools = StartPools(FakePoolOptions(1), 1 << 20, /*shared_buffers=*/true);
    ASSERT_TRUE(pools.ok()) << pools.status();
    measuring_ = new PythonBackend("cuda", /*modelled=*/false, *std::move(pools));
  }
  static void TearDownTestSuite() {
    delete backend_;
    delete measuring_;
  }

  static ExecResult Run(const std::string& candidate, double seconds = 10,
                        PythonBackend* backend = backend_, bool ablation = true) {
    ExecRequest request = MakeExecRequest(
        candidate, backend == backend_ ? "pass" : "result['modelled'] = False", seconds);
    request.set_skip_timing(true);
    request.set_skip_ablation(!ablation);
    return RunOrFail(backend, request);
  }

  static PythonBackend* backend_;
  static PythonBackend* measuring_;
};

PythonBackend* FollowUpTest::backend_ = nullptr;
PythonBackend* FollowUpTest::measuring_ = nullptr;

constexpr char kKernels[] = "kernels = [['f', 3], ['g', 7]]\n";

TEST_F(FollowUpTest, KernelsAreLeftOutAndTheirEffectsReported) {
  const ExecResult result = Run(absl::StrCat(
      kKernels, "ablated = lambda order: {'output': {'value': 1 if order['skip'] == 1 else 0}}\n"));
  EXPECT_EQ(result.outcome().reason(), Outcome::OK) << result.DebugString();
  EXPECT_EQ(result.ablation_all(), ABLATION_CHANGED);
  ASSERT_EQ(result.ablations_size(), 2);
  EXPECT_EQ(result.ablations(0).name(), "f");
  EXPECT_EQ(result.ablations(0).effect(), ABLATION_CHANGED);
  EXPECT_EQ(result.ablations(1).line(), 7);
  EXPECT_NE(result.ablations(1).effect(), ABLATION_NOT_TRIED);
  EXPECT_EQ(result.gpu_kernels_size(), 0);
  EXPECT_EQ(result.gpu_profile_note(), "");
}

TEST_F(FollowUpTest, CanBeSwitchedOff) {
  const ExecResult result = Run(absl::StrCat(kKernels, "ablated = 3\n"), 10, backend_, false);
  EXPECT_EQ(result.outcome().reason(), Outcome::OK) << result.DebugString();
  EXPECT_EQ(result.ablations_size(), 0);
}

TEST_F(FollowUpTest, AHangIsNoTimeoutOfACorrectCandidate) {
  const ExecResult all =
      Run(absl::StrCat(kKernels, "ablated = lambda order: time.sleep(1000)\nimport time\n"), 3);
  EXPECT_EQ(all.outcome().reason(), Outcome::OK) << all.DebugString();
  EXPECT_EQ(all.ablation_all(), ABLATION_NOT_TRIED);
  const ExecResult one = Run(absl::StrCat(kKernels,
                                          "import time\ndef ablated(order):\n"
                                          "  if order['skip'] == 0: time.sleep(1000)\n"
                                          "  return {'output': {'value': 0}}\n"),
                             3);
  EXPECT_EQ(one.outcome().reason(), Outcome::OK) << one.DebugString();
  EXPECT_EQ(one.ablation_all(), ABLATION_CHANGED);
  EXPECT_EQ(one.ablations(0).effect(), ABLATION_NOT_TRIED);
  EXPECT_NE(one.ablations(0).text().find("did not end in time"), std::string::npos);
  EXPECT_EQ(one.ablations(1).effect(), ABLATION_NOT_TRIED);
}

TEST_F(FollowUpTest, DyingWithoutAKernelIsAChange) {
  for (const char* end : {"os._exit(0)", "os._exit(3)", "os.kill(os.getpid(), 9)", "1 / 0"}) {
    const ExecResult result =
        Run(absl::StrCat(kKernels, "import os\nablated = lambda order: ", end, "\n"));
    EXPECT_EQ(result.outcome().reason(), Outcome::OK) << end << result.DebugString();
    EXPECT_EQ(result.ablation_all(), ABLATION_CHANGED) << end;
  }
}

TEST_F(FollowUpTest, WhatCannotBeConfirmedIsInconclusive) {
  const ExecResult result = Run(absl::StrCat(kKernels,
                                             "import os\ndef ablated(order):\n"
                                             "  if order['skip'] == 'none': os._exit(0)\n"
                                             "  return {'output': {'value': 1}}\n"));
  EXPECT_EQ(result.outcome().reason(), Outcome::INCONCLUSIVE) << result.DebugString();
  EXPECT_NE(result.outcome().message().find("without its kernels"), std::string::npos)
      << result.outcome().message();
}

TEST_F(FollowUpTest, EndingBeforeTheQuestionIsRefused) {
  const ExecResult result =
      Run("import fake_runner\nfake_runner.serve_ablation = lambda control, names: None\n");
  EXPECT_EQ(result.outcome().reason(), Outcome::BAD_RESULT) << result.DebugString();
  EXPECT_NE(result.outcome().message().find("named the kernels"), std::string::npos)
      << result.outcome().message();
}

TEST_F(FollowUpTest, NonsenseIsABadResult) {
  for (const char* lie : {"kernels = 3", "kernels = [['f', 3]]\nablated = lambda o: {'late': 1}",
                          "kernels = [['f', 3]]\nablated = lambda o: {'more': 1}",
                          "kernels = [['f', 3]]\nablated = lambda o: {'output': {'tensor': 1}}"}) {
    EXPECT_EQ(Run(lie).outcome().reason(), Outcome::BAD_RESULT) << lie;
  }
  // A second result, after the one that counts.
  EXPECT_EQ(Run("import os\nkernels = [['f', 3]]\n"
                "ablated = lambda o: os.write(3, b'{\"result\": {}}\\n') and {}")
                .outcome()
                .reason(),
            Outcome::BAD_RESULT);
}

TEST_F(FollowUpTest, WhatRanOnTheGpuIsReported) {
  ExecResult result =
      Run("profiled = {'output': {'value': 1}, 'note': '', 'kernels': "
          "[{'name': 'gemm', 'calls': 2, 'seconds': 3e-6, 'own': False}]}\n",
          10, measuring_);
  EXPECT_EQ(result.outcome().reason(), Outcome::OK) << result.DebugString();
  ASSERT_EQ(result.gpu_kernels_size(), 1);
  EXPECT_EQ(result.gpu_kernels(0).name(), "gemm");
  result = Run(kKernels, 10, measuring_);
  EXPECT_EQ(result.gpu_profile_note(), "fake");
  EXPECT_EQ(result.ablation_all(), ABLATION_CHANGED);  // it goes on after that
}

TEST_F(FollowUpTest, AWrongOutputInTheProfiledCallIsAMismatch) {
  ExecResult result =
      Run("profiled = {'output': {'value': 2}, 'note': '', 'kernels': []}\n", 10, measuring_);
  EXPECT_EQ(result.outcome().reason(), Outcome::MISMATCH) << result.DebugString();
  EXPECT_NE(result.outcome().message().find("in a profiled call"), std::string::npos)
      << result.outcome().message();
  result = Run("profiled = {'output': {'value': 1}, 'kernels': []}\n", 10, measuring_);
  EXPECT_EQ(result.outcome().reason(), Outcome::BAD_RESULT) << result.DebugString();
}

TEST(MayHaveHarmedDeviceTest, AnEndOrAnErrorOfCudaMay) {
  FollowUpResult found;
  EXPECT_FALSE(MayHaveHarmedDevice(found));
  found.ablation.kernels.emplace_back().set_text("ValueError: no");
  EXPECT_FALSE(MayHaveHarmedDevice(found));
  FollowUpResult illegal = found;
  illegal.ablation.kernels[0].set_text(
      "a kernel touched memory that is not its own: CUDA error: an illegal memory access");
  EXPECT_TRUE(MayHaveHarmedDevice(illegal));
  found.ended = true;
  EXPECT_TRUE(MayHaveHarmedDevice(found));
}

}  // namespace
}  // namespace tritonrl
