// An executor's process with a GPU. Without one the cases are skipped.
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "exec/device/testing/scripted_channel.h"
#include "exec/executor/executor_pool.h"
#include "exec/executor/testing/scripted_client.h"

namespace tritonrl {
namespace {

using device::FloatTensor;
using testing::HasSubstr;

class CudaExecutorTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!FileExists("/dev/nvidiactl")) return;
    ExecutorPoolOptions options;
    options.process.device = "cuda";
    options.max_resident_bytes = int64_t{12} << 30;
    if (const char* const program = getenv("TRITONRL_TEST_EXECUTOR"); program != nullptr) {
      options.process.program = program;
    }
    auto pool = ExecutorPool::Create(options);
    if (absl::IsFailedPrecondition(pool.status())) {  // no bubblewrap here
      options.process.sandbox = SandboxKind::kNone;
      pool = ExecutorPool::Create(options);
    }
    ASSERT_TRUE(pool.ok()) << pool.status();
    pool_ = pool->release();
  }
  static void TearDownTestSuite() {
    delete pool_;
    pool_ = nullptr;
  }
  void SetUp() override {
    if (pool_ == nullptr) GTEST_SKIP() << "there is no GPU";
  }

  absl::StatusOr<device::SessionResult> Run(const at::Tensor& input,
                                            std::vector<std::string> script,
                                            absl::Duration limit = absl::Seconds(60)) {
    return RunScript(pool_, input, {.script = std::move(script), .limit = limit}, &session_);
  }
  void ExpectToWork(int count = 3000) {
    const at::Tensor input = at::arange(count, at::kFloat);
    const auto result = Run(input, AddScript(count));
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->outputs.size(), 1);
    EXPECT_TRUE(result->outputs[0].host.equal(input.add(0.5)));
    EXPECT_EQ(result->provenance.at(0).bytes[static_cast<int>(device::Tag::kKernel)], 4 * count);
  }

  static ExecutorPool* pool_;
  std::unique_ptr<ExecutorSession> session_;
};

ExecutorPool* CudaExecutorTest::pool_ = nullptr;

TEST_F(CudaExecutorTest, ACandidateIsServedReplayedAndTimed) {
  ASSERT_TRUE(pool_->gpu().has_value());
  EXPECT_GE(pool_->gpu()->capability_major, 8);
  ExpectToWork();
  const at::Tensor other = at::full({3000}, 2.0f);
  const auto replay = session_->ReplayCall(ReplayOn(other));
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_TRUE(replay->output.host.equal(other.add(0.5)));
  for (const bool direct : {false, true}) {
    const auto begun = session_->BeginTiming(ReplayOn(other), direct);
    ASSERT_TRUE(begun.ok()) << begun.status();
    EXPECT_EQ(begun->empty(), !direct) << *begun;
    const auto timed = session_->TimeReplays({.count = 20, .output = true});
    ASSERT_TRUE(timed.ok()) << timed.status();
    ASSERT_EQ(timed->seconds.size(), 20);
    EXPECT_LT(*std::min_element(timed->seconds.begin(), timed->seconds.end()), 1e-3);
    EXPECT_TRUE(timed->output.host.equal(other.add(0.5)));
    const auto mean = session_->TimeReplays({.count = 10, .with_launches = true});
    ASSERT_TRUE(mean.ok()) << mean.status();
    EXPECT_EQ(mean->seconds.size(), 1);
  }
  // Replays go on after timing.
  EXPECT_TRUE(session_->ReplayCall(ReplayOn(other)).ok());
}

// Copies of a size that no pinned memory is kept for, and memory that the arena has to make.
TEST_F(CudaExecutorTest, LargeTensors) {
  for (const int count : {1 << 20, 40 << 20, 3 << 20}) ExpectToWork(count);
}

TEST_F(CudaExecutorTest, TheProcessIsConfined) {
  ExpectToWork();
  const std::string status = *ReadFile(absl::StrCat("/proc/", pool_->busy().at(0), "/status"));
  EXPECT_THAT(status, HasSubstr("Seccomp:\t2"));
  EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1"));
  EXPECT_THAT(status, HasSubstr("CapEff:\t0000000000000000"));
}

TEST_F(CudaExecutorTest, AWildAccessEndsTheContextAndTheNextCandidateIsServed) {
  const int64_t replaced = pool_->counts().replaced;
  std::vector<std::string> script = AddScript(3000);
  // A million elements, where there are 3000.
  std::string launch =
      device::LaunchText(0, absl::StrCat(FloatTensor(2, 3000), ",", FloatTensor(1, 3000), ",",
                                         FloatTensor(3, 3000), ",", 100 << 20));
  launch.replace(launch.find("[1,1,1]"), 7, absl::StrCat("[", 100 << 10, ",1,1]"));
  script[kLaunchOfScript] = launch;
  const auto result = Run(at::full({3000}, 1.0f), script);
  if (result.ok()) {
    ASSERT_FALSE(result->counts.kernel_errors.empty());
    EXPECT_EQ(result->counts.kernel_errors[0].code, absl::StatusCode::kOutOfRange)
        << result->counts.kernel_errors[0].text;
  } else {
    EXPECT_TRUE(absl::IsOutOfRange(result.status())) << result.status();
  }
  ExpectToWork();
  EXPECT_EQ(pool_->counts().replaced, replaced + 1);
}

TEST_F(CudaExecutorTest, AnEndlessKernelEndsItsProcessAndTheNextCandidateIsServed) {
  const std::string lock = device::TensorText(1, "int32", "64", "1");
  const std::vector<std::string> script = {
      R"({"do":"begin"})", device::EmptyText(64, "int32"),
      device::OperatorText("fill_", "Scalar", absl::StrCat(lock, ",1")),
      R"({"do":"constructed","state":[]})", device::EmptyText(64), KernelOf("spin_lock.ttir"),
      // The lock is taken, and nobody gives it back.
      device::LaunchText(0, absl::StrCat(lock, ",", lock, ",", FloatTensor(3, 64))),
      absl::StrCat(R"({"do":"output","value":)", FloatTensor(3, 64), "}")};
  const absl::Time began = absl::Now();
  const auto result = Run(at::full({64}, 1.0f), script, absl::Seconds(2));
  EXPECT_TRUE(absl::IsDeadlineExceeded(result.status())) << result.status();
  EXPECT_LT(absl::Now() - began, absl::Seconds(20));
  ExpectToWork();
}

}  // namespace
}  // namespace tritonrl
