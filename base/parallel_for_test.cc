#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/thread_pool.h"

namespace tritonrl {
namespace {

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
