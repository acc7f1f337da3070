#include "model/cpu/buffer_pool.h"

#include <gtest/gtest.h>

namespace tritonrl {
namespace {

TEST(BufferPoolTest, FreedMemoryServesTensorsOfSimilarSize) {
  auto pool = std::make_shared<BufferPool>();
  at::Tensor a = pool->Empty({1000, 64}, at::kFloat);
  EXPECT_EQ(a.sizes(), at::IntArrayRef({1000, 64}));
  void* data = a.data_ptr();
  EXPECT_EQ(pool->idle_bytes(), 0u);
  a = at::Tensor();
  EXPECT_GE(pool->idle_bytes(), 1000u * 64 * 4);
  at::Tensor b = pool->Empty({64, 990}, at::kFloat);
  EXPECT_EQ(b.data_ptr(), data);
  EXPECT_EQ(pool->idle_bytes(), 0u);
}

TEST(BufferPoolTest, KeepsNoMoreThanItsLimitAndTensorsOutliveIt) {
  auto pool = std::make_shared<BufferPool>(1 << 20);
  at::Tensor small = pool->Empty({100}, at::kLong);
  at::Tensor large = pool->Empty({1 << 20}, at::kFloat);
  large = at::Tensor();
  EXPECT_EQ(pool->idle_bytes(), 0u);
  pool.reset();
  small.data_ptr<int64_t>()[99] = 7;
  EXPECT_EQ(small.data_ptr<int64_t>()[99], 7);
}

TEST(BufferPoolTest, CountsWhatTensorsTakeAndTheMostOfIt) {
  auto pool = std::make_shared<BufferPool>();
  at::Tensor a = pool->Empty({1 << 10}, at::kFloat), b = pool->Empty({1 << 11}, at::kFloat);
  EXPECT_EQ(pool->taken_bytes(), (4u << 10) + (4u << 11));
  b.reset();
  EXPECT_EQ(pool->taken_bytes(), 4u << 10);
  EXPECT_EQ(pool->peak_bytes(), (4u << 10) + (4u << 11));
  pool->ResetPeak();
  b = pool->Empty({1 << 9}, at::kFloat);
  EXPECT_EQ(pool->peak_bytes(), (4u << 10) + (4u << 9));
}

}  // namespace
}  // namespace tritonrl
