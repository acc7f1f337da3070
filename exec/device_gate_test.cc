#include "exec/device_gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "absl/time/clock.h"

namespace tritonrl {
namespace {

absl::Time Soon() { return absl::Now() + absl::Seconds(20); }

// Waits up to about 20 s until another thread makes `condition` true.
template <typename Condition>
bool Eventually(Condition condition) {
  for (int i = 0; i < 20000; ++i) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return false;
}

TEST(DeviceGateTest, TimingIsExclusiveAndEveryRequestFinishes) {
  constexpr int kSlots = 3, kRequests = 40;
  DeviceGate gate(kSlots);
  std::atomic<int> checking{0}, timing{0}, max_checking{0}, done{0}, disturbed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kRequests; ++i) {
    threads.emplace_back([&, i] {
      DeviceGate::Lease lease(&gate, absl::InfiniteFuture());
      ASSERT_TRUE(lease.ok());
      ASSERT_TRUE(lease.Reserve(0, absl::InfiniteFuture()));
      const int now = ++checking;
      for (int most = max_checking; now > most && !max_checking.compare_exchange_weak(most, now);)
        continue;
      disturbed += timing > 0;
      absl::SleepFor(absl::Milliseconds(1 + i % 4));
      --checking;
      if (i % 3 != 0) {
        EXPECT_TRUE(lease.AcquireExclusive(absl::InfiniteFuture()));
        disturbed += checking > 0 || timing++ > 0;
        absl::SleepFor(absl::Milliseconds(1));
        disturbed += checking > 0;
        --timing;
        if (i % 2 == 0) {
          EXPECT_TRUE(lease.ReturnToShared(absl::InfiniteFuture()));
          disturbed += timing > 0;
        }
      }
      ++done;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, kRequests);
  EXPECT_EQ(disturbed, 0);
  EXPECT_LE(max_checking, kSlots);
  EXPECT_GT(max_checking, 1);
}

TEST(DeviceGateTest, ADeadlineEndsTheWaitForAPlace) {
  DeviceGate gate(1);
  DeviceGate::Lease first(&gate, absl::InfiniteFuture());
  DeviceGate::Lease second(&gate, absl::Now() + absl::Milliseconds(20));
  EXPECT_TRUE(first.ok());
  EXPECT_FALSE(second.ok());
  EXPECT_FALSE(second.AcquireExclusive(absl::InfiniteFuture()));
  EXPECT_FALSE(second.Reserve(0, absl::InfiniteFuture()));
  EXPECT_TRUE(first.AcquireExclusive(absl::InfiniteFuture()));
  DeviceGate::Lease third(&gate, absl::Now());
  EXPECT_FALSE(third.ok());
}

TEST(DeviceGateTest, ReservationsFitTheMemoryAndComeInTurn) {
  constexpr int64_t kMemory = 100;
  DeviceGate gate(16);
  gate.SetMemory(kMemory);
  std::atomic<int64_t> reserved{0};
  std::atomic<int> overrun{0}, alone{0}, disturbed{0}, done{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 60; ++i) {
    threads.emplace_back([&, i] {
      DeviceGate::Lease lease(&gate, absl::InfiniteFuture());
      const int64_t bytes = i % 7 == 0 ? 1000 : 10 + i % 40;  // some exceed the memory
      ASSERT_TRUE(lease.Reserve(bytes, absl::InfiniteFuture()));
      const int64_t mine = std::min(bytes, kMemory);
      overrun += (reserved += mine) > kMemory;
      absl::SleepFor(absl::Milliseconds(1));
      if (i % 2 == 0) {
        EXPECT_TRUE(lease.AcquireExclusive(absl::InfiniteFuture()));
        disturbed += alone++ > 0;
        absl::SleepFor(absl::Milliseconds(1));
        --alone;
        if (i % 4 == 0) {
          EXPECT_TRUE(lease.ReturnToShared(absl::InfiniteFuture()));
        }
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

TEST(DeviceGateTest, AReservationTakesThePlaceOfTheOneBefore) {
  DeviceGate gate(2);
  gate.SetMemory(100);
  DeviceGate::Lease first(&gate, absl::InfiniteFuture()), second(&gate, absl::InfiniteFuture());
  ASSERT_TRUE(first.Reserve(80, absl::InfiniteFuture()));
  ASSERT_TRUE(first.Reserve(60, absl::InfiniteFuture()));
  ASSERT_TRUE(second.Reserve(40, absl::InfiniteFuture()));
  EXPECT_FALSE(first.Reserve(61, absl::Now() + absl::Milliseconds(20)));
  EXPECT_TRUE(first.Reserve(1, absl::InfiniteFuture()));
  EXPECT_FALSE(second.Reserve(1000, absl::Now() + absl::Milliseconds(20)));
}

TEST(DeviceGateTest, WhoSteppedAsideIsNotWaitedFor) {
  DeviceGate gate(2);
  DeviceGate::Lease waiting(&gate, Soon()), timing(&gate, Soon());
  ASSERT_TRUE(waiting.Reserve(5, Soon()));
  waiting.Release();
  EXPECT_TRUE(timing.AcquireExclusive(Soon()));
  EXPECT_FALSE(waiting.Reserve(1, absl::Now() + absl::Milliseconds(20)));
  EXPECT_TRUE(timing.ReturnToShared(Soon()));
  EXPECT_TRUE(waiting.Reserve(1, Soon()));
}

TEST(DeviceGateTest, WaitingToBeAloneOrAmongOthersHasADeadline) {
  DeviceGate gate(3);
  DeviceGate::Lease one(&gate, Soon()), two(&gate, Soon()), three(&gate, Soon());
  ASSERT_TRUE(one.Reserve(7, Soon()));
  ASSERT_TRUE(two.Reserve(1, Soon()));
  EXPECT_FALSE(one.AcquireExclusive(absl::Now() + absl::Milliseconds(20)));
  EXPECT_EQ(gate.state().reserved, 1) << "it does not use the device any more";
  EXPECT_TRUE(two.AcquireExclusive(Soon()));
  std::thread waits([&] { EXPECT_TRUE(three.AcquireExclusive(Soon())); });
  EXPECT_TRUE(Eventually([&] { return gate.state().waiting > 0; }));
  EXPECT_FALSE(two.ReturnToShared(absl::Now() + absl::Milliseconds(20))) << "another one is alone";
  waits.join();
  EXPECT_EQ(gate.state().users, 1);
}

TEST(DeviceGateTest, ALargeReservationIsNotOvertaken) {
  DeviceGate gate(8, 10);
  DeviceGate::Lease six(&gate, Soon()), three(&gate, Soon());
  ASSERT_TRUE(six.Reserve(6, Soon()));
  EXPECT_FALSE(six.was_shared());
  ASSERT_TRUE(three.Reserve(3, Soon()));
  EXPECT_TRUE(six.was_shared());
  EXPECT_TRUE(three.was_shared());
  std::atomic<bool> large_in{false};
  std::thread large([&] {
    DeviceGate::Lease lease(&gate, Soon());
    EXPECT_TRUE(lease.Reserve(8, Soon()));
    large_in = true;
  });
  EXPECT_TRUE(Eventually([&] { return gate.state().waiting >= 1; }));
  std::thread small([&] {
    DeviceGate::Lease lease(&gate, Soon());
    EXPECT_TRUE(lease.Reserve(1, Soon()));
    const int64_t reserved = gate.state().reserved;
    EXPECT_TRUE(reserved >= 8 || large_in);
  });
  EXPECT_TRUE(Eventually([&] { return gate.state().waiting >= 2; }));
  EXPECT_FALSE(large_in);
  six.Release();
  three.Release();
  large.join();
  small.join();
}

TEST(DeviceGateTest, TheOnlyOneGetsWhatItAsksFor) {
  DeviceGate gate(2, 100);
  DeviceGate::Lease first(&gate, Soon()), second(&gate, Soon());
  ASSERT_TRUE(first.Reserve(80, Soon()));
  EXPECT_FALSE(second.Reserve(30, absl::Now() + absl::Milliseconds(20)));
  EXPECT_TRUE(second.Reserve(20, Soon()));
  second.Release();
  first.Release();
  EXPECT_TRUE(second.Reserve(1000, Soon())) << "nobody else is there to wait for";
}

}  // namespace
}  // namespace tritonrl
