#include "exec/executor/outbox.h"

#include <gtest/gtest.h>
#include <string.h>

#include <utility>
#include <vector>

#include "exec/workers/shared_memory.h"

namespace tritonrl::executor {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHeader = 64;

class OutboxTest : public testing::Test {
 protected:
  void SetUp() override {
    auto memory = SharedMemory::Create("outbox", 64 * kPage);
    ASSERT_TRUE(memory.ok());
    memory_ = *std::move(memory);
    auto outbox = Outbox::Create(memory_.fd());
    ASSERT_TRUE(outbox.ok()) << outbox.status();
    outbox_ = *std::move(outbox);
  }
  uint64_t OffsetOf(const c10::DataPtr& data) {
    uint64_t offset = 1;
    EXPECT_TRUE(outbox_->Contains(data.get(), 1, &offset));
    return offset;
  }

  SharedMemory memory_;
  std::unique_ptr<Outbox> outbox_;
};

TEST_F(OutboxTest, MemoryIsUsedAgain) {
  c10::DataPtr a = outbox_->AllocateHere(1);
  c10::DataPtr b = outbox_->AllocateHere(kPage + 1);
  c10::DataPtr c = outbox_->AllocateHere(61 * kPage - kHeader);
  EXPECT_EQ(OffsetOf(a), kHeader);
  EXPECT_EQ(OffsetOf(b), kPage + kHeader);
  EXPECT_EQ(OffsetOf(c), 3 * kPage + kHeader);
  EXPECT_EQ(outbox_->AllocateHere(1).get(), nullptr);
  for (c10::DataPtr* freed : {&a, &c, &b}) freed->clear();  // in this order all become one
  c10::DataPtr all = outbox_->AllocateHere(64 * kPage - kHeader);
  EXPECT_EQ(OffsetOf(all), kHeader);
  EXPECT_EQ(outbox_->AllocateHere(~size_t{0}).get(), nullptr);
}

// As some operators of LibTorch do.
TEST_F(OutboxTest, RawMemory) {
  for (const size_t bytes : {size_t{0}, size_t{8}, Outbox::kLeastBytes, 64 * kPage}) {
    void* const data = outbox_->raw_allocate(bytes);
    if (bytes > 0) memset(data, 1, bytes);
    outbox_->raw_deallocate(data);
  }
  const c10::DataPtr all = outbox_->AllocateHere(64 * kPage - kHeader);
  EXPECT_NE(all.get(), nullptr);
}

TEST_F(OutboxTest, OthersCanReadIt) {
  const c10::DataPtr data = outbox_->AllocateHere(8);
  static_cast<char*>(data.get())[7] = 'x';
  EXPECT_EQ((*memory_.Map(kHeader + 8))[kHeader + 7], 'x');
}

TEST_F(OutboxTest, SmallTensorsAndThoseWithoutRoomLieElsewhere) {
  uint64_t offset = 0;
  const c10::DataPtr small = outbox_->allocate(Outbox::kLeastBytes - 1);
  EXPECT_FALSE(outbox_->Contains(small.get(), 1, &offset));
  const c10::DataPtr large = outbox_->allocate(Outbox::kLeastBytes);
  EXPECT_TRUE(outbox_->Contains(large.get(), Outbox::kLeastBytes, &offset));
  EXPECT_FALSE(outbox_->Contains(large.get(), 65 * kPage, &offset));
  const c10::DataPtr other = outbox_->allocate(64 * kPage);
  ASSERT_NE(other.get(), nullptr);
  EXPECT_FALSE(outbox_->Contains(other.get(), 1, &offset));
}

}  // namespace
}  // namespace tritonrl::executor
