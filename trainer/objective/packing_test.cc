#include "trainer/objective/packing.h"

#include <algorithm>
#include <set>

#include "base/random.h"
#include "gtest/gtest.h"

namespace tritonrl {
namespace {

TEST(PackByTokens, FillsUpToTheBudgetInOrderOfLength) {
  const std::vector<int64_t> lengths = {5, 2, 4, 3};
  // Sorted: 2, 3, 4, 5.
  EXPECT_EQ(PackByTokens(lengths, 9), (std::vector<std::vector<int>>{{1, 3, 2}, {0}}));
  EXPECT_EQ(PackByTokens(lengths, 5), (std::vector<std::vector<int>>{{1, 3}, {2}, {0}}));
}

TEST(BalanceOverRanks, TheSquareOfTheLengthCounts) {
  // By tokens alone the loads are equal: 6 + 2 = 4 + 3 + 1. With attention the longest sequence
  // costs more than all others together.
  const std::vector<int64_t> lengths = {1, 6, 2, 3, 4};
  EXPECT_EQ(BalanceOverRanks(lengths, 2, {}), (std::vector<int>{1, 0, 0, 1, 1}));
  EXPECT_EQ(BalanceOverRanks(lengths, 2, {.quadratic = 10}), (std::vector<int>{1, 0, 1, 1, 1}));
  EXPECT_EQ(BalanceOverRanks(lengths, 1, {}), (std::vector<int>(5, 0)));
  EXPECT_TRUE(BalanceOverRanks({}, 3, {}).empty());
}

TEST(BalanceOverRanks, LoadsDifferByLessThanTheLongest) {
  Philox random(11);
  std::vector<int64_t> lengths;
  for (int i = 0; i < 256; ++i) lengths.push_back(64 + static_cast<int64_t>(random.Below(18368)));
  const SequenceCost cost{.quadratic = 2e-5};
  for (const int ranks : {2, 8, 64}) {
    std::vector<double> loads(ranks, 0.0);
    double longest = 0;
    const std::vector<int> owners = BalanceOverRanks(lengths, ranks, cost);
    for (size_t i = 0; i < lengths.size(); ++i) {
      loads[owners[i]] += cost.Of(lengths[i]);
      longest = std::max(longest, cost.Of(lengths[i]));
    }
    const auto [least, most] = std::minmax_element(loads.begin(), loads.end());
    EXPECT_LT(*most - *least, longest) << ranks << " ranks";
  }
}

TEST(PackByTokens, GivesALongSequenceAMicroBatchOfItsOwn) {
  const std::vector<int64_t> lengths = {100, 1};
  EXPECT_EQ(PackByTokens(lengths, 10), (std::vector<std::vector<int>>{{1}, {0}}));
}

TEST(PackByTokens, HoldsEveryIndexOnceWithinTheBudget) {
  Philox random(7);
  std::vector<int64_t> lengths;
  for (int i = 0; i < 500; ++i) lengths.push_back(1 + static_cast<int64_t>(random.Below(300)));
  std::set<int> seen;
  for (const auto& pack : PackByTokens(lengths, 1000)) {
    int64_t sum = 0;
    for (const int i : pack) {
      sum += lengths[i];
      EXPECT_TRUE(seen.insert(i).second) << i;
    }
    EXPECT_LE(sum, 1000);
  }
  EXPECT_EQ(seen.size(), lengths.size());
  EXPECT_TRUE(PackByTokens({}, 10).empty());
}

}  // namespace
}  // namespace tritonrl
