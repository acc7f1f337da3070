#include "exec/backend/device_health.h"

#include <gtest/gtest.h>

#include <utility>

#include "absl/time/clock.h"
#include "exec/backend/local_backend.h"
#include "exec/client_run/client_job.h"
#include "exec/testing/pool_options.h"

namespace tritonrl {
namespace {

absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

TEST(DeviceCheckTest, ADeviceThatComputesPasses) {
  WorkerPoolOptions options;
  options.workers = 1;
  auto clients = ClientPoolOptions(std::move(options));
  ASSERT_TRUE(clients.ok()) << clients.status();
  auto pools = StartPools(*std::move(clients), 1 << 20, /*reference_processes=*/true);
  ASSERT_TRUE(pools.ok()) << pools.status();
  WorkerPool* const reference_workers = pools->reference_workers.get();
  DeviceHealthChecker checker("cpu", reference_workers);
  for (int i = 0; i < 3; ++i) {
    const absl::Status sound = checker.Check(reference_workers->limits(), Soon());
    EXPECT_TRUE(sound.ok()) << sound;
  }
  EXPECT_EQ(reference_workers->counts().jobs, 0)
      << "the process of the first check is still the same";
}

// The fake runner answers every job with a result that no reference could have.
TEST(DeviceCheckTest, ADeviceThatAnswersNonsenseDoesNot) {
  auto pool = WorkerPool::Start(FakePoolOptions(1));
  ASSERT_TRUE(pool.ok()) << pool.status();
  DeviceHealthChecker checker("cuda", pool->get());
  EXPECT_TRUE(absl::IsUnavailable(checker.Check((*pool)->limits(), Soon())));

  DeviceHealth doubt("cuda", pool->get());
  EXPECT_TRUE(doubt.EnsureHealthy((*pool)->limits(), Soon()).ok());
  doubt.Note(Outcome::OK);
  doubt.Note(Outcome::MISMATCH);
  EXPECT_TRUE(doubt.EnsureHealthy((*pool)->limits(), Soon()).ok());
  EXPECT_EQ(doubt.checks(), 0);
  doubt.Note(Outcome::CRASHED);
  EXPECT_FALSE(doubt.EnsureHealthy((*pool)->limits(), Soon()).ok());
  EXPECT_FALSE(doubt.EnsureHealthy((*pool)->limits(), Soon()).ok());
  EXPECT_EQ(doubt.checks(), 2);
}

TEST(DeviceCheckTest, WithoutAGpuThereIsNoDoubt) {
  auto pool = WorkerPool::Start(FakePoolOptions(1));
  ASSERT_TRUE(pool.ok()) << pool.status();
  DeviceHealth doubt("cpu", pool->get());
  doubt.Note(Outcome::CRASHED);
  EXPECT_TRUE(doubt.EnsureHealthy((*pool)->limits(), Soon()).ok());
  EXPECT_EQ(doubt.checks(), 0);
}

}  // namespace
}  // namespace tritonrl
