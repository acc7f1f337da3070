#include "parallel/zero_shard_plan.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace tritonrl {
namespace {

TEST(ZeroShardPlan, OneRankKeepsEverythingInOrder) {
  const ZeroShardPlan plan(1000, 1, 300);
  ASSERT_EQ(plan.buckets(), 4);
  EXPECT_EQ(plan.LocalSize(0), 1000);
  for (int64_t b = 0; b < 4; ++b) {
    EXPECT_EQ(plan.Shard(b, 0).begin, 300 * b);
    EXPECT_EQ(plan.LocalOffset(b, 0), 300 * b);
  }
  EXPECT_EQ(plan.Shard(3, 0).end, 1000);
}

TEST(ZeroShardPlan, ShortPiecesAreTheLastOnes) {
  const ZeroShardPlan plan(64 * 10, 4, 64 * 7);  // buckets of 7 and of 3 times 64
  ASSERT_EQ(plan.buckets(), 2);
  EXPECT_EQ(plan.Shard(0, 0).size(), 128);
  EXPECT_EQ(plan.Shard(0, 3).size(), 64);
  EXPECT_EQ(plan.Shard(1, 2).size(), 64);
  EXPECT_EQ(plan.Shard(1, 3).size(), 0);
  EXPECT_EQ(plan.LocalSize(0), 192);
  EXPECT_EQ(plan.LocalSize(3), 64);
  EXPECT_EQ(ZeroShardPlan(0, 4, 64).LocalSize(2), 0);
}

// Exactly one rank stores each element, and a rank's shards fill its local buffer without a gap.
TEST(ZeroShardPlan, EveryElementIsKeptOnce) {
  for (const int64_t flat_size : {64, 6400, 12864, 64 * 1001}) {
    for (const int ranks : {1, 2, 3, 8, 13}) {
      for (const int64_t bucket : {int64_t{64}, int64_t{640}, int64_t{100000}}) {
        const ZeroShardPlan plan(flat_size, ranks, bucket);
        int64_t next = 0;
        for (int64_t b = 0; b < plan.buckets(); ++b) {
          for (int r = 0; r < ranks; ++r) {
            const FlatRange shard = plan.Shard(b, r);
            ASSERT_EQ(shard.begin, next);
            ASSERT_GE(shard.size(), 0);
            next = shard.end;
            const int64_t local_end = plan.LocalOffset(b, r) + shard.size();
            ASSERT_EQ(local_end,
                      b + 1 < plan.buckets() ? plan.LocalOffset(b + 1, r) : plan.LocalSize(r));
          }
        }
        ASSERT_EQ(next, flat_size) << ranks << " ranks, buckets of " << bucket;
      }
    }
  }
}

TEST(ZeroShardPlan, LocalRangesAreWhereTheElementsOfARangeLie) {
  const ZeroShardPlan plan(64 * 10, 2, 64 * 4);  // shards of 128, 128; 128, 128; 64, 64
  const auto ranges = [&](int64_t begin, int64_t end, int rank) {
    std::vector<std::pair<int64_t, int64_t>> found;
    for (const FlatRange& r : plan.LocalRanges({begin, end}, rank))
      found.push_back({r.begin, r.end});
    return found;
  };
  using Ranges = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(ranges(0, 640, 0), (Ranges{{0, 128}, {128, 256}, {256, 320}}));
  EXPECT_EQ(ranges(100, 400, 0), (Ranges{{100, 128}, {128, 256}}));
  EXPECT_EQ(ranges(100, 400, 1), (Ranges{{0, 128}, {128, 144}}));
  EXPECT_EQ(ranges(600, 640, 0), Ranges());
}

}  // namespace
}  // namespace tritonrl
