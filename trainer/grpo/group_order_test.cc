#include "trainer/grpo/group_order.h"

#include <algorithm>
#include <tuple>

#include "base/random.h"
#include "gtest/gtest.h"

namespace tritonrl {
namespace {

constexpr int kGroups = 12, kGroupSize = 4;

// Samples that get a token each in a step from when their group begins, and are judged some time
// after they have ended.
struct Load {
  explicit Load(uint64_t seed) {
    Philox random(seed);
    for (int g = 0; g < kGroups; ++g) {
      SampleGroup& group = batch.groups.emplace_back();
      group.slot = 3 * g + 1;  // one of three ranks
      group.samples.resize(kGroupSize);
      group.longest = std::make_shared<std::atomic<int>>(0);
      begins.push_back(g < 8 ? 0 : static_cast<int>(random.Below(20)));
      for (int i = 0; i < kGroupSize; ++i) {
        lengths.push_back(1 + static_cast<int>(random.Below(40)));
        judging.push_back(static_cast<int>(random.Below(15)));
      }
    }
  }

  void Go(int time) {
    for (int g = 0; g < kGroups; ++g) {
      SampleGroup& group = batch.groups[g];
      for (int i = 0; i < kGroupSize; ++i) {
        const int length = lengths[g * kGroupSize + i], now = time - begins[g];
        group.longest->store(std::max(group.longest->load(), std::min(length, now)));
        JudgedSample& judged = group.samples[i];
        if (now >= length) judged.sample.tokens.resize(length);
        judged.generated = now >= length;
        judged.judged = now >= length + judging[g * kGroupSize + i];
      }
    }
  }

  // Takes what can be taken.
  void Take() {
    while (const auto next = NextInOrder(batch, taken)) {
      taken[*next] = true;
      order.push_back(*next);
    }
  }

  std::vector<int> ByLongest() const {
    std::vector<std::tuple<int, int>> groups;
    for (int g = 0; g < kGroups; ++g) {
      const auto first = lengths.begin() + g * kGroupSize;
      groups.emplace_back(*std::max_element(first, first + kGroupSize), g);
    }
    std::sort(groups.begin(), groups.end());
    std::vector<int> order;
    for (const auto& [longest, group] : groups) order.push_back(group);
    return order;
  }

  SampleBatch batch;
  std::vector<int> begins, lengths, judging;
  std::vector<bool> taken = std::vector<bool>(kGroups);
  std::vector<int> order;
};

TEST(NextInOrder, IsThatOfTheLongestSamplesWhateverTheClockSays) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    for (const int every : {1, 7, 100}) {
      Load load(seed);
      for (int time = 0; time <= 100; time += every) {
        load.Go(time);
        load.Take();
      }
      EXPECT_EQ(load.order, load.ByLongest()) << seed;
    }
  }
}

TEST(NextInOrder, WhatEndsIsTakenWhileLongerOnesAreGenerated) {
  Load load(3);
  std::fill(load.begins.begin(), load.begins.end(), 0);
  std::fill(load.judging.begin(), load.judging.end(), 0);
  load.lengths[5 * kGroupSize] = 90;
  load.Go(60);
  load.Take();
  EXPECT_EQ(load.order.size(), kGroups - 1);
  load.Go(90);
  load.Take();
  EXPECT_EQ(load.order.back(), 5);
}

TEST(NextInOrder, AGroupThatMayStillTurnOutShorterIsWaitedFor) {
  Load load(3);
  load.Go(1000);
  SampleGroup& late = load.batch.groups[4];
  late.longest->store(1);
  late.samples[0] = JudgedSample();
  for (JudgedSample& judged : late.samples) judged.sample.tokens.clear();
  EXPECT_FALSE(NextInOrder(load.batch, load.taken).has_value());
  late.longest->store(41);
  EXPECT_TRUE(NextInOrder(load.batch, load.taken).has_value());
}

}  // namespace
}  // namespace tritonrl
