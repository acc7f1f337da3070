#include "exec/gpu_gate.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tritonrl
