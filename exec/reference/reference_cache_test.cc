#include "exec/reference/reference_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "exec/device_backend.h"

namespace tritonrl {
namespace {

std::shared_ptr<const ReferenceResult> Result(Outcome::Reason reason, size_t bytes = 0) {
  auto result = std::make_shared<ReferenceResult>();
  SetOutcome(reason, "", result->run.mutable_outcome());
  result->visible_layout = std::string(bytes, 'x');
  return result;
}

struct Asked {
  std::shared_ptr<const ReferenceResult> result;
  bool cached = false;
};

Asked Ask(ReferenceCache* cache, const std::string& key, Outcome::Reason outcome = Outcome::OK,
          size_t bytes = 0) {
  Asked asked;
  asked.result = cache->Get(
      key, absl::InfiniteFuture(), [&] { return Result(outcome, bytes); }, &asked.cached);
  return asked;
}

TEST(ReferenceCacheTest, KeepsResultsAndFaultsOfTheTask) {
  ReferenceCache cache(1 << 20);
  for (const Outcome::Reason outcome : {Outcome::OK, Outcome::REFERENCE_FAILED}) {
    const std::string key = ReasonName(outcome);
    const Asked first = Ask(&cache, key, outcome);
    const Asked second = Ask(&cache, key, Outcome::INTERNAL_ERROR);
    EXPECT_FALSE(first.cached);
    EXPECT_TRUE(second.cached);
    EXPECT_EQ(first.result, second.result);
  }
  EXPECT_EQ(cache.counts().runs, 2);
  EXPECT_EQ(cache.counts().hits, 2);
}

TEST(ReferenceCacheTest, InfraErrorsAreRetried) {
  ReferenceCache cache(1 << 20);
  EXPECT_EQ(Ask(&cache, "a", Outcome::WORKER_LOST).result->run.outcome().reason(),
            Outcome::WORKER_LOST);
  EXPECT_EQ(Ask(&cache, "a").result->run.outcome().reason(), Outcome::OK);
  EXPECT_EQ(cache.counts().runs, 2);
}

TEST(ReferenceCacheTest, TheLeastRecentlyUsedGoesFirst) {
  ReferenceCache cache(250000);
  const Asked a = Ask(&cache, "a", Outcome::OK, 100000);
  Ask(&cache, "b", Outcome::OK, 100000);
  EXPECT_TRUE(Ask(&cache, "a").cached);
  Ask(&cache, "c", Outcome::OK, 100000);  // evicts b
  EXPECT_TRUE(Ask(&cache, "a").cached);
  EXPECT_FALSE(Ask(&cache, "b", Outcome::OK, 100000).cached);   // evicts c
  EXPECT_FALSE(Ask(&cache, "d", Outcome::OK, 1000000).cached);  // evicts all, itself too
  EXPECT_EQ(cache.counts().entries, 0);
  EXPECT_EQ(cache.counts().bytes, 0);
  EXPECT_EQ(a.result->visible_layout.size(), 100000u);  // its user keeps it alive
}

TEST(ReferenceCacheTest, CallersWithOneKeyWaitForOneRun) {
  ReferenceCache cache(1 << 20);
  absl::Notification go;
  std::atomic<int> made{0}, cached{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      bool was_cached = false;
      const auto result = cache.Get(
          "key", absl::InfiniteFuture(),
          [&] {
            ++made;
            go.WaitForNotification();
            return Result(Outcome::OK);
          },
          &was_cached);
      EXPECT_NE(result, nullptr);
      cached += was_cached;
    });
  }
  while (made == 0) std::this_thread::yield();
  // A call for another key does not wait, and a deadline ends the wait.
  EXPECT_FALSE(Ask(&cache, "other").cached);
  bool unused;
  EXPECT_EQ(cache.Get(
                "key", absl::Now() + absl::Milliseconds(5), [] { return nullptr; }, &unused),
            nullptr);
  go.Notify();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
  EXPECT_EQ(cached, 7);
}

}  // namespace
}  // namespace tritonrl
