#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

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
  }  // the destructor finishes what is queued
  EXPECT_EQ(sum, 5060);
}

}  // namespace
}  // namespace tritonrl
