// Tests waits of a backend with reference processes, on a fake runner and fake executors.
#include "exec/backend/local_backend.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "exec/backend/backend_factory.h"
#include "exec/testing/fake_executors.h"
#include "exec/testing/pool_options.h"

namespace tritonrl {
namespace {

class LocalBackendTest : public testing::Test {
 protected:
  // `candidate` is what candidates do, `ending` what their sessions say on a GPU of 24 GiB.
  void Start(FakeExecutors::Candidate candidate, FakeExecutors::Ending ending = nullptr) {
    WorkerPoolOptions options = FakePoolOptions(3);
    auto pools = StartPools(options, 1 << 20, /*reference_processes=*/true);
    ASSERT_TRUE(pools.ok()) << pools.status();
    std::optional<device::DeviceDescription> gpu;
    if (ending != nullptr) gpu.emplace();
    pools->executors = std::make_unique<FakeExecutors>(std::move(candidate), gpu, ending);
    backend_ = std::make_unique<LocalBackend>("cuda", *std::move(pools));
  }

  static ExecRequest Request(const std::string& reference, const std::string& candidate) {
    ExecRequest request;
    request.set_reference_source(reference);
    request.set_candidate_source(candidate);
    request.set_trials(1);
    request.set_skip_timing(true);
    request.set_skip_ablation(true);
    request.set_torch_may_compute(true);  // no recording says who computes
    return request;
  }

  ExecResult Run(const ExecRequest& request) {
    auto result = backend_->Run(request, absl::Now() + absl::Seconds(30));
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : ExecResult();
  }

  std::unique_ptr<LocalBackend> backend_;
};

TEST_F(LocalBackendTest, ACachedFailureNeedsNoGpuMemory) {
  absl::Notification begun, go_on;
  Start([&](const std::string& source) {
    if (source == "fills the GPU") {
      begun.Notify();
      go_on.WaitForNotificationWithTimeout(absl::Minutes(1));
    }
    return absl::OkStatus();
  });
  // A candidate that fills the GPU according to its reference's sizes.
  const ExecRequest large =
      Request("sizes = {'call_bytes': 100 << 30, 'device_bytes': 80 << 30}", "fills the GPU");
  // A failed reference is cached without a reference process, so its result needs no GPU memory.
  const ExecRequest failed = Request(
      "result['outcome'] = 'reference_error'\nresult['message'] = 'no'\njob['host'] = False\n",
      "fast");
  EXPECT_EQ(Run(failed).outcome().reason(), Outcome::REFERENCE_FAILED);
  std::thread filling([&] { EXPECT_EQ(Run(large).outcome().reason(), Outcome::OK); });
  EXPECT_TRUE(begun.WaitForNotificationWithTimeout(absl::Minutes(1)));
  EXPECT_EQ(backend_->memory().reserved, backend_->memory().shared_out);
  EXPECT_GT(backend_->memory().reserved, int64_t{20} << 30);
  const ExecResult told = Run(failed);  // DEADLINE if this waits for `large`
  go_on.Notify();
  EXPECT_EQ(told.outcome().reason(), Outcome::REFERENCE_FAILED);
  EXPECT_TRUE(told.reference_cached());
  filling.join();
  EXPECT_EQ(backend_->memory().reserved, 0);
}

TEST_F(LocalBackendTest, IdleReferenceProcessesGiveUpTheirWorkers) {
  // Three unused reference processes must make room for three new references at once. While the old
  // processes free their memory, new processes start; the old ones then are idle and still occupy
  // their workers.
  Start([](const std::string& source) {
    if (source == "slow") absl::SleepFor(absl::Milliseconds(200));
    return absl::OkStatus();
  });
  const auto numbered = [](int number) {
    return Request(absl::StrCat("sizes = {'device_bytes': 80 << 30}\n"
                                "drop_seconds = 0.5\n#",
                                number),
                   "fast");
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Run(numbered(i)).outcome().reason(), Outcome::OK);
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&, i] {
      ExecRequest request = numbered(10 + i);
      request.set_candidate_source("slow");
      EXPECT_EQ(Run(request).outcome().reason(), Outcome::OK) << i;
    });
  }
  for (std::thread& caller : callers) caller.join();
}

// Candidates that fail for lack of GPU memory; the source is how many bytes they wanted in all when
// the GPU had none, though they were allowed to have them.
class LackOfMemoryTest : public LocalBackendTest {
 protected:
  ExecResult RunWith(int64_t lacking_bytes, int64_t call_bytes) {
    Start([](const std::string&) { return absl::OkStatus(); },
          [](const std::string& source, device::SessionResult* result) {
            result->failure = {"forward", "OutOfMemoryError", "CUDA out of memory.", 1};
            EXPECT_TRUE(absl::SimpleAtoi(source, &result->lacking_bytes));
          });
    return Run(Request(absl::StrCat("sizes = {'call_bytes': ", call_bytes, "}"),
                       absl::StrCat(lacking_bytes)));
  }
};

TEST_F(LackOfMemoryTest, BeyondItsLimitIsTheCandidates) {
  const ExecResult result = RunWith(0, 1 << 20);
  EXPECT_EQ(result.outcome().reason(), Outcome::OUT_OF_MEMORY) << result.outcome().message();
  EXPECT_EQ(result.attempts(), 1);
}

TEST_F(LackOfMemoryTest, OfMoreThanTheReferenceTakesIsTheCandidates) {
  const ExecResult result = RunWith(int64_t{1} << 33, 1 << 20);
  EXPECT_EQ(result.outcome().reason(), Outcome::OUT_OF_MEMORY) << result.outcome().message();
  EXPECT_EQ(result.attempts(), 1);
}

TEST_F(LackOfMemoryTest, OfNoMoreThanTheReferenceTakesIsTriedAgainAlone) {
  const ExecResult result = RunWith(1 << 19, 1 << 20);
  EXPECT_EQ(result.outcome().reason(), Outcome::NO_DEVICE_MEMORY) << result.outcome().message();
  EXPECT_EQ(result.outcome().status(), Outcome::STATUS_INFRA_ERROR);
  EXPECT_EQ(result.attempts(), 2);
}

TEST_F(LackOfMemoryTest, AnInfrastructureErrorWhereTheTaskDoesNotFit) {
  const ExecResult result = RunWith(0, int64_t{100} << 30);
  EXPECT_EQ(result.outcome().reason(), Outcome::NO_DEVICE_MEMORY) << result.outcome().message();
  EXPECT_EQ(result.attempts(), 1);
}

TEST(MakeBackendTest, NamesOfBackends) {
  EXPECT_EQ(*ParseBackendKind("auto"), BackendKind::kAuto);
  EXPECT_EQ(*ParseBackendKind("cuda"), BackendKind::kCuda);
  EXPECT_EQ(*ParseBackendKind("native"), BackendKind::kNative);
  EXPECT_TRUE(absl::StrContains(ParseBackendKind("tpu").status().message(), "\"tpu\""));
  BackendOptions options;
  options.sandbox = "jail";
  EXPECT_EQ(MakeBackend(options).status().code(), absl::StatusCode::kInvalidArgument);
  if (!HasNvidiaGpu()) {
    options.sandbox = "bubblewrap";
    options.kind = BackendKind::kCuda;
    EXPECT_EQ(MakeBackend(options).status().code(), absl::StatusCode::kFailedPrecondition);
  }
}

}  // namespace
}  // namespace tritonrl
