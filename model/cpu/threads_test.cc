#include "model/cpu/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace tritonrl {
namespace {

TEST(CpuThreadsTest, EveryTaskRunsOnce) {
  CpuThreads threads(3);
  EXPECT_EQ(threads.count(), 3);
  for (int round = 0; round < 2000; ++round) {
    const int n = round % 17;
    std::vector<std::atomic<int>> calls(n);
    threads.ParallelFor(n, [&](int64_t i) { ++calls[i]; });
    for (int i = 0; i < n; ++i) ASSERT_EQ(calls[i], 1) << "round " << round;
  }
}

TEST(CpuThreadsTest, LoopInsideALoopAndFromSeveralThreads) {
  CpuThreads threads(2);
  std::atomic<int> calls{0};
  auto work = [&] {
    for (int round = 0; round < 200; ++round) {
      threads.ParallelFor(4, [&](int64_t) { threads.ParallelFor(3, [&](int64_t) { ++calls; }); });
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(calls, 2 * 200 * 12);
}

TEST(CpuThreadsTest, ScratchIsAlignedAndKeptPerThread) {
  float* first = CpuThreads::Scratch(1000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  EXPECT_EQ(CpuThreads::Scratch(500), first);
  float* other = nullptr;
  std::thread([&] { other = CpuThreads::Scratch(1000); }).join();
  EXPECT_NE(other, first);
}

}  // namespace
}  // namespace tritonrl
