#include "exec/device/storage_table.h"

#include <ATen/ops/arange.h>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace tritonrl::device {
namespace {

class StorageTableTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto arena = Arena::Create();
    ASSERT_TRUE(arena.ok()) << arena.status();
    arena_ = *std::move(arena);
    limits_.max_memory_bytes = 1 << 20;
    limits_.max_live_storages = 4;
    table_ = std::make_unique<StorageTable>(arena_.get(), limits_);
  }
  static TensorRef Ref(const Storage& storage, std::vector<int64_t> shape,
                       std::vector<int64_t> stride, at::ScalarType type = at::kFloat) {
    TensorRef tensor;
    tensor.storage = storage.number;
    tensor.dtype = type;
    tensor.shape = std::move(shape);
    tensor.stride = std::move(stride);
    return tensor;
  }

  std::unique_ptr<Arena> arena_;
  SessionLimits limits_;
  std::unique_ptr<StorageTable> table_;
};

TEST_F(StorageTableTest, FreshMemoryIsPoisoned) {
  Storage* const first = *table_->Allocate(16, at::kFloat);
  table_->set_poison(Poison::kPattern);
  Storage* const second = *table_->Allocate(16, at::kFloat);
  EXPECT_TRUE(table_->View(Ref(*first, {4}, {1})).isnan().all().item<bool>());
  EXPECT_GT(table_->View(Ref(*second, {4}, {1})).min().item<float>(), 1e15f);
  EXPECT_EQ(table_->Count(Ref(*first, {4}, {1})).bytes[0], 16);
}

TEST_F(StorageTableTest, TensorsAreCheckedAgainstTheirStorage) {
  Storage* const storage = *table_->Allocate(16, at::kFloat);
  EXPECT_TRUE(table_->Check(Ref(*storage, {4}, {1})).ok());
  EXPECT_TRUE(table_->Check(Ref(*storage, {100}, {0})).ok());
  EXPECT_FALSE(table_->Check(Ref(*storage, {5}, {1})).ok());
  EXPECT_FALSE(table_->Check(Ref(*storage, {4}, {1}, at::kDouble)).ok());
  EXPECT_FALSE(table_->Check(Ref(*storage, {2, 2}, {3, 1})).ok());
  EXPECT_FALSE(table_->Check(Ref(*storage, {1 << 20, 1 << 20}, {0, 0})).ok());
  TensorRef unknown = Ref(*storage, {1}, {1});
  unknown.storage = 17;
  EXPECT_TRUE(absl::StartsWith(table_->Check(unknown).message(), "the candidate's process sent"));
  table_->Free(storage->number);
  EXPECT_FALSE(table_->Check(Ref(*storage, {4}, {1})).ok());
}

TEST_F(StorageTableTest, QuotasHoldForLiveStorages) {
  Storage* const large = *table_->Allocate(1 << 20, at::kByte);
  const auto more = table_->Allocate(1, at::kByte);
  EXPECT_TRUE(absl::StrContains(more.status().message(), "CUDA out of memory"));
  table_->Free(large->number);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(table_->Allocate(1, at::kByte).ok());
  EXPECT_FALSE(table_->Allocate(1, at::kByte).ok());
}

TEST_F(StorageTableTest, ARevivedStorageKeepsItsAddressAndLosesItsContents) {
  Storage* const storage = *table_->Allocate(8, at::kLong);
  const TensorRef tensor = Ref(*storage, {1}, {1}, at::kLong);
  table_->View(tensor).fill_(3);
  table_->Fill(tensor, static_cast<uint8_t>(Tag::kConstant));
  const char* const address = storage->data;
  table_->Free(storage->number);
  EXPECT_EQ(table_->Find(storage->number), nullptr);
  ASSERT_TRUE(table_->Revive(storage->number).ok());
  EXPECT_EQ(table_->Find(storage->number)->data, address);
  EXPECT_EQ(table_->View(tensor).item<int64_t>(), -1);
  EXPECT_EQ(table_->Count(tensor).bytes[static_cast<int>(Tag::kUnwritten)], 8);
}

TEST_F(StorageTableTest, ManyStoragesComeAndGo) {
  for (int i = 0; i < 40'000; ++i) {
    const auto storage = table_->Allocate(8, at::kLong);
    ASSERT_TRUE(storage.ok()) << i << storage.status();
    table_->Free((*storage)->number);
  }
  EXPECT_EQ(table_->live_bytes(), 0);
}

TEST_F(StorageTableTest, PinnedStoragesStay) {
  Storage* const storage = *table_->Allocate(8, at::kLong);
  storage->pinned = true;
  table_->Free(storage->number);
  EXPECT_NE(table_->Find(storage->number), nullptr);
}

TEST_F(StorageTableTest, AddressesFindTheirStorage) {
  Storage* const first = *table_->Allocate(8, at::kByte);
  Storage* const second = *table_->Allocate(8, at::kByte);
  const auto address = [](const Storage* s) { return reinterpret_cast<uint64_t>(s->data); };
  EXPECT_EQ(table_->FindAddress(address(first) + 7), first);
  EXPECT_EQ(table_->FindAddress(address(first) + 8), nullptr);
  EXPECT_EQ(table_->FindAddress(address(second)), second);
  EXPECT_EQ(table_->FindAddress(0), nullptr);
  EXPECT_EQ(table_->FindAddress(~uint64_t{0}), nullptr);
}

TEST_F(StorageTableTest, TagsFollowCopiesByteForByte) {
  Storage* const from = *table_->Allocate(16, at::kFloat);
  Storage* const to = *table_->Allocate(16, at::kFloat);
  table_->Fill(Ref(*from, {2}, {2}), static_cast<uint8_t>(Tag::kKernel));  // elements 0 and 2
  table_->Tags(Ref(*to, {4}, {1})).copy_(table_->Tags(Ref(*from, {4}, {1})));
  const TagCounts counts = table_->Count(Ref(*to, {4}, {1}));
  EXPECT_EQ(counts.bytes[static_cast<int>(Tag::kKernel)], 8);
  EXPECT_EQ(counts.bytes[static_cast<int>(Tag::kUnwritten)], 8);
  EXPECT_EQ(counts.total, 16);
}

}  // namespace
}  // namespace tritonrl::device
