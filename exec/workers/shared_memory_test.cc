#include "exec/workers/shared_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tritonrl {
namespace {

TEST(SharedMemoryTest, SizeIsFixedAndPagesAreTakenWhenWritten) {
  auto memory = SharedMemory::Create("test", uint64_t{1} << 40);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->resident_bytes(), 0);
  EXPECT_EQ(pwrite(memory->fd(), "abc", 3, 5000), 3);
  EXPECT_GE(memory->resident_bytes(), 4096);
  EXPECT_LT(memory->resident_bytes(), 1 << 20);
  EXPECT_NE(ftruncate(memory->fd(), 10), 0);
  EXPECT_NE(ftruncate(memory->fd(), int64_t{1} << 41), 0);
  ASSERT_TRUE(memory->Map(8192).ok());
  EXPECT_EQ(memory->view().substr(5000, 3), "abc");
  EXPECT_EQ(memory->view().size(), 8192u);
  EXPECT_EQ(pwrite(memory->fd(), "x", 1, 5000), 1);  // the view shows writes to unsealed memory
  EXPECT_EQ(memory->view()[5000], 'x');
}

TEST(SharedMemoryTest, SealedIsFinal) {
  auto memory = SharedMemory::Create("test", 4096);
  ASSERT_TRUE(memory.ok()) << memory.status();
  void* map = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd(), 0);
  ASSERT_NE(map, MAP_FAILED);
  EXPECT_FALSE(memory->Seal().ok());  // the mapping is still writable
  munmap(map, 4096);

  auto other = SharedMemory::Create("test", 4096);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(pwrite(other->fd(), "abc", 3, 0), 3);
  ASSERT_TRUE(other->Seal().ok());
  EXPECT_LT(pwrite(other->fd(), "x", 1, 0), 0);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, other->fd(), 0), MAP_FAILED);
  SharedMemory moved = *std::move(other);
  ASSERT_TRUE(moved.Map(100).ok());
  EXPECT_EQ(moved.view().substr(0, 3), "abc");
}

}  // namespace
}  // namespace tritonrl
