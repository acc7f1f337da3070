#include "trainer/packing.h"

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
