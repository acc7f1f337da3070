#include "exec/device/arena.h"

#include <string.h>

#include "gtest/gtest.h"

namespace tritonrl::device {
namespace {

TEST(ArenaTest, PlacementIsDeterministicAndGuarded) {
  const auto arena = Arena::Create();
  ASSERT_TRUE(arena.ok()) << arena.status();
  char* const first = *(*arena)->Reserve(100);
  char* const second = *(*arena)->Reserve(0);
  char* const third = *(*arena)->Reserve(Arena::kBlockBytes + 1);
  if (kArenaBase != 0) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first), kArenaBase);
  }
  EXPECT_EQ(second - first, Arena::kBlockBytes + Arena::kGuardBytes);
  EXPECT_EQ(third - second, Arena::kBlockBytes + Arena::kGuardBytes);
  EXPECT_EQ(*(*arena)->Reserve(1) - third, 2 * Arena::kBlockBytes + Arena::kGuardBytes);
  (*arena)->Reset();
  EXPECT_EQ(*(*arena)->Reserve(100), first);
}

TEST(ArenaTest, MemoryComesWithCommitAndGoesWithDecommit) {
  const auto arena = Arena::Create();
  ASSERT_TRUE(arena.ok()) << arena.status();
  char* const place = *(*arena)->Reserve(5000);
  ASSERT_TRUE((*arena)->Commit(place, 5000).ok());
  memset(place, 1, 5000);
  (*arena)->Decommit(place, 5000);
  EXPECT_DEATH(place[0] = 2, "");
  ASSERT_TRUE((*arena)->Commit(place, 5000).ok());
  EXPECT_EQ(place[0], 0);
  EXPECT_DEATH(place[Arena::kBlockBytes] = 2, "");  // the guard gap
}

TEST(ArenaTest, AddressesEnd) {
  const auto arena = Arena::Create(0, 10 * Arena::kBlockBytes);
  ASSERT_TRUE(arena.ok()) << arena.status();
  EXPECT_FALSE((*arena)->Reserve(int64_t{1} << 62).ok());
  EXPECT_FALSE((*arena)->Reserve(-1).ok());
  EXPECT_FALSE((*arena)->Reserve(10 * Arena::kBlockBytes).ok());
  EXPECT_TRUE((*arena)->Reserve(9 * Arena::kBlockBytes).ok());
  EXPECT_EQ((*arena)->Reserve(1).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(ArenaTest, TwoArenasCannotShareAddresses) {
  if (kArenaBase == 0) GTEST_SKIP() << "the kernel chooses addresses under this sanitizer";
  const auto first = Arena::Create();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(Arena::Create().status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace tritonrl::device
