#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "trainer/grpo/verification.h"

namespace tritonrl {
namespace {

class EchoBackend : public DeviceBackend {
 public:
  absl::StatusOr<ExecResult> Run(const ExecRequest& request, absl::Time) override {
    ExecResult result;
    result.mutable_outcome()->set_message(request.task_id());
    return result;
  }
  int concurrency() const override { return 1; }
  std::string name() const override { return "native"; }
  bool modelled() const override { return true; }
  std::string sandbox_description() const override { return "a box"; }
};

TEST(StartingBackendTest, RunsWaitForTheStart) {
  absl::Notification go;
  DeferredBackend backend(
      [&]() -> absl::StatusOr<std::unique_ptr<DeviceBackend>> {
        go.WaitForNotification();
        return std::make_unique<EchoBackend>();
      },
      "native", true, 2);
  EXPECT_EQ(backend.name(), "native");
  EXPECT_EQ(backend.concurrency(), 2);
  EXPECT_EQ(backend.sandbox_description(), "starting");
  EXPECT_TRUE(backend.StartStatus().ok());
  EXPECT_EQ(backend.Run(ExecRequest(), absl::Now() + absl::Milliseconds(20)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  go.Notify();
  ExecRequest request;
  request.set_task_id("a task");
  const auto result = backend.Run(request, absl::Now() + absl::Seconds(30));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outcome().message(), "a task");
  EXPECT_EQ(backend.sandbox_description(), "a box");
}

TEST(StartingBackendTest, EndsWithoutWaitingForAStartThatHangs) {
  // Shared, because the blocked thread outlives the backend and may outlive this function.
  auto hang = std::make_shared<absl::Notification>();
  {
    DeferredBackend backend(
        [hang]() -> absl::StatusOr<std::unique_ptr<DeviceBackend>> {
          hang->WaitForNotification();
          return absl::CancelledError("");
        },
        "native", true, 1);
    std::thread canceller([&] { backend.Cancel(); });
    EXPECT_TRUE(absl::IsCancelled(backend.Run(ExecRequest(), absl::InfiniteFuture()).status()));
    canceller.join();
  }
  hang->Notify();
}

TEST(StartingBackendTest, AFailedStartIsToldToEverybody) {
  DeferredBackend backend(
      [] { return absl::FailedPreconditionError("no sandbox on this machine"); }, "native", true,
      1);
  const auto result = backend.Run(ExecRequest(), absl::Now() + absl::Seconds(30));
  EXPECT_EQ(Message(result.status()), "no sandbox on this machine");
  EXPECT_EQ(Message(backend.StartStatus()), "no sandbox on this machine");
}

}  // namespace
}  // namespace tritonrl
