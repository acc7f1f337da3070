#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

namespace tritonrl {
namespace {

TEST(BoundedQueueTest, KeepsOrderAndLimit) {
  BoundedQueue<int> queue(2);
  EXPECT_TRUE(queue.Push(1));
  EXPECT_TRUE(queue.Push(2));
  std::atomic<bool> pushed{false};
  std::thread producer([&] { pushed = queue.Push(3); });
  EXPECT_FALSE(pushed);
  EXPECT_EQ(queue.Pop(), 1);
  producer.join();
  EXPECT_TRUE(pushed);
  EXPECT_EQ(queue.Pop(), 2);
  EXPECT_EQ(queue.Pop(), 3);
  EXPECT_EQ(queue.PopFor(absl::Milliseconds(1)), std::nullopt);
}

TEST(BoundedQueueTest, CloseWakesBothSidesAndKeepsValues) {
  BoundedQueue<int> queue(1);
  ASSERT_TRUE(queue.Push(1));
  std::atomic<int> pushed{-1};
  std::thread producer([&] { pushed = queue.Push(2) ? 1 : 0; });
  queue.Close();
  producer.join();
  EXPECT_EQ(pushed, 0);
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_EQ(queue.Pop(), std::nullopt);
}

TEST(BoundedQueueTest, HandsEverythingOver) {
  BoundedQueue<int> queue(3);
  std::thread producer([&] {
    for (int i = 0; i < 1000; ++i) queue.Push(i);
    queue.Close();
  });
  int expected = 0;
  while (auto value = queue.Pop()) EXPECT_EQ(*value, expected++);
  EXPECT_EQ(expected, 1000);
  producer.join();
}

TEST(ThreadPoolTest, RunsAllAndWaits) {
  std::atomic<int> sum{0};
  {
    ThreadPool pool(3);
    EXPECT_EQ(pool.size(), 3);
    for (int i = 1; i <= 100; ++i) pool.Schedule([&sum, i] { sum += i; });
    pool.Wait();
    EXPECT_EQ(sum, 5050);
    for (int i = 0; i < 10; ++i) pool.Schedule([&sum] { ++sum; });
  }  // the destructor runs the queued functions
  EXPECT_EQ(sum, 5060);
}

TEST(NumberedWork, EachNumberOnceAndThreadsByTheirOwn) {
  for (const int threads : {1, 3, 50}) {
    std::vector<std::atomic<int>> calls(20);
    std::vector<std::atomic<int>> inside(threads);
    const absl::Status status = ParallelFor(threads, 20, [&](int thread, int64_t i) {
      EXPECT_EQ(++inside.at(thread), 1) << "two threads have one number";
      ++calls[i];
      std::this_thread::yield();
      --inside[thread];
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    for (const auto& count : calls) EXPECT_EQ(count, 1);
  }
}

TEST(NumberedWork, FewPiecesNeedNoThread) {
  const std::thread::id caller = std::this_thread::get_id();
  const auto work = [&](int, int64_t) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    return absl::OkStatus();
  };
  EXPECT_TRUE(ParallelFor(8, 1, work).ok());
  EXPECT_TRUE(ParallelFor(8, 0, work).ok());
}

TEST(NumberedWork, AnErrorEndsIt) {
  std::atomic<int> calls{0};
  const absl::Status status = ParallelFor(2, 1'000'000, [&](int, int64_t i) {
    ++calls;
    return i == 10 ? absl::DataLossError("piece 10") : absl::OkStatus();
  });
  EXPECT_EQ(status, absl::DataLossError("piece 10"));
  EXPECT_LT(calls, 1'000'000);
}

TEST(NumberedWork, WhatIsThrownIsAnError) {
  for (const int threads : {1, 2}) {
    EXPECT_TRUE(absl::IsResourceExhausted(
        ParallelFor(threads, 4, [](int, int64_t) -> absl::Status { throw std::bad_alloc(); })));
    EXPECT_EQ(ParallelFor(threads, 4,
                          [](int, int64_t) -> absl::Status { throw std::runtime_error("no"); }),
              absl::InternalError("no"));
  }
}

}  // namespace
}  // namespace tritonrl
