#include "rollout/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/random.h"

namespace tritonrl {
namespace {

TEST(BlockPool, GivesEachPageOnceAndTheOneFreedLastFirst) {
  BlockPool pool(3);
  EXPECT_EQ(pool.Allocate(), 0);
  EXPECT_EQ(pool.Allocate(), 1);
  EXPECT_EQ(pool.Allocate(), 2);
  EXPECT_EQ(pool.num_free(), 0);
  pool.Release(2);
  pool.Release(0);
  EXPECT_EQ(pool.Allocate(), 0);
  EXPECT_EQ(pool.peak(), 3);
}

TEST(BlockPool, TheLastHolderFreesAPage) {
  BlockPool pool(1);
  const int32_t page = pool.Allocate();
  pool.Hold(page);
  pool.Release(page);
  EXPECT_EQ(pool.num_free(), 0);
  EXPECT_EQ(pool.holders(page), 1);
  pool.Release(page);
  EXPECT_EQ(pool.num_free(), 1);
}

TEST(BlockPoolDeathTest, MistakesEndTheProgram) {
  BlockPool pool(1);
  EXPECT_DEATH(pool.Release(0), "the page is free");
  EXPECT_DEATH(pool.Hold(0), "the page is free");
  pool.Allocate();
  EXPECT_DEATH(pool.Allocate(), "no page is free");
}

// Against the plain list of holds.
TEST(BlockPool, RandomOperationsKeepTheCounts) {
  Philox random(3);
  for (int round = 0; round < 20; ++round) {
    const int pages = 1 + static_cast<int>(random.Below(40));
    BlockPool pool(pages);
    std::vector<int32_t> holds;  // one entry a hold
    size_t peak = 0;
    for (int operation = 0; operation < 10000; ++operation) {
      const uint64_t kind = random.Below(5);
      const std::set<int32_t> used(holds.begin(), holds.end());
      if (kind < 2 && pool.num_free() > 0) {
        const int32_t page = pool.Allocate();
        ASSERT_TRUE(page >= 0 && page < pages && used.count(page) == 0);
        holds.push_back(page);
      } else if (kind == 2 && !holds.empty()) {
        holds.push_back(holds[random.Below(holds.size())]);
        pool.Hold(holds.back());
      } else if (!holds.empty()) {
        std::swap(holds[random.Below(holds.size())], holds.back());
        pool.Release(holds.back());
        holds.pop_back();
      }
      const std::set<int32_t> now(holds.begin(), holds.end());
      peak = std::max(peak, now.size());
      ASSERT_EQ(pool.num_free(), pages - static_cast<int>(now.size()));
      ASSERT_EQ(pool.peak(), static_cast<int>(peak));
      if (!holds.empty()) {
        const int32_t page = holds[random.Below(holds.size())];
        ASSERT_EQ(pool.holders(page), std::count(holds.begin(), holds.end(), page));
      }
    }
  }
}

}  // namespace
}  // namespace tritonrl
