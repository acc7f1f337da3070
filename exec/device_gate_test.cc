#include "exec/gpu_gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "absl/time/clock.h"

namespace tritonrl {
namespace {

TEST(GpuGateTest, WhoTimesIsAloneAndNobodyIsForgotten) {
  constexpr int kPlaces = 3, kRequests = 40;
  GpuGate gate(kPlaces);
  std::atomic<int> checking{0}, timing{0}, most_checking{0}, done{0}, disturbed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kRequests; ++i) {
    threads.emplace_back([&, i] {
      GpuGate::Place place(&gate, absl::InfiniteFuture());
      ASSERT_TRUE(place.ok());
      const int now = ++checking;
      for (int most = most_checking; now > most && !most_checking.compare_exchange_weak(most, now);)
        continue;
      disturbed += timing > 0;
      absl::SleepFor(absl::Milliseconds(1 + i % 4));
      --checking;
      if (i % 3 != 0) {
        place.TakeAlone();
        disturbed += checking > 0 || timing++ > 0;
        absl::SleepFor(absl::Milliseconds(1));
        disturbed += checking > 0;
        --timing;
        if (i % 2 == 0) {
          place.ShareAgain();
          disturbed += timing > 0;
        }
      }
      ++done;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, kRequests);
  EXPECT_EQ(disturbed, 0);
  EXPECT_LE(most_checking, kPlaces);
  EXPECT_GT(most_checking, 1);
}

TEST(GpuGateTest, ADeadlineEndsTheWaitForAPlace) {
  GpuGate gate(1);
  GpuGate::Place first(&gate, absl::InfiniteFuture());
  GpuGate::Place second(&gate, absl::Now() + absl::Milliseconds(20));
  EXPECT_TRUE(first.ok());
  EXPECT_FALSE(second.ok());
  second.TakeAlone();  // changes nothing
  first.TakeAlone();
  GpuGate::Place third(&gate, absl::Now());
  EXPECT_FALSE(third.ok());
}

TEST(GpuGateTest, ReservationsFitTheMemoryAndComeInTurn) {
  constexpr int64_t kMemory = 100;
  GpuGate gate(16);
  gate.SetMemory(kMemory);
  std::atomic<int64_t> reserved{0};
  std::atomic<int> overrun{0}, alone{0}, disturbed{0}, done{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 60; ++i) {
    threads.emplace_back([&, i] {
      GpuGate::Place place(&gate, absl::InfiniteFuture());
      const int64_t bytes = i % 7 == 0 ? 1000 : 10 + i % 40;  // some want more than there is
      ASSERT_TRUE(place.Reserve(bytes, absl::InfiniteFuture()));
      const int64_t mine = std::min(bytes, kMemory);
      overrun += (reserved += mine) > kMemory;
      absl::SleepFor(absl::Milliseconds(1));
      if (i % 2 == 0) {
        place.TakeAlone();
        disturbed += alone++ > 0;
        absl::SleepFor(absl::Milliseconds(1));
        --alone;
        if (i % 4 == 0) place.ShareAgain();
      }
      reserved -= mine;
      ++done;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, 60);
  EXPECT_EQ(overrun, 0);
  EXPECT_EQ(disturbed, 0);
}

TEST(GpuGateTest, AReservationTakesThePlaceOfTheOneBefore) {
  GpuGate gate(2);
  gate.SetMemory(100);
  GpuGate::Place first(&gate, absl::InfiniteFuture()), second(&gate, absl::InfiniteFuture());
  ASSERT_TRUE(first.Reserve(80, absl::InfiniteFuture()));
  ASSERT_TRUE(first.Reserve(60, absl::InfiniteFuture()));
  ASSERT_TRUE(second.Reserve(40, absl::InfiniteFuture()));
  EXPECT_FALSE(first.Reserve(61, absl::Now() + absl::Milliseconds(20)));
  EXPECT_TRUE(first.Reserve(1, absl::InfiniteFuture()));
  EXPECT_FALSE(second.Reserve(1000, absl::Now() + absl::Milliseconds(20)));
}

TEST(GpuGateTest, WhoSteppedAsideIsNotWaitedFor) {
  GpuGate gate(2);
  GpuGate::Place waiting(&gate, absl::InfiniteFuture()), timing(&gate, absl::InfiniteFuture());
  waiting.StepAside();
  timing.TakeAlone();
  EXPECT_FALSE(waiting.Reserve(1, absl::Now() + absl::Milliseconds(20)));
  timing.ShareAgain();
  EXPECT_TRUE(waiting.Reserve(1, absl::InfiniteFuture()));
}

}  // namespace
}  // namespace tritonrl
