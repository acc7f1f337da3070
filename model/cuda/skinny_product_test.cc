// How rows of weights are divided among blocks; the products themselves are tested on a GPU by
// //rollout/cuda:device_test.
#include "model/cuda/skinny_product.h"

#include <gtest/gtest.h>

#include <vector>

namespace tritonrl {
namespace {

constexpr int kHopper = 132;  // multiprocessors

// Tiles of 16 rows of the block that has the most.
int64_t Busiest(const SkinnyTiling& tiling, int rooms) {
  return (tiling.passes + rooms - 1) / rooms * tiling.tiles;
}

TEST(SkinnyProductTest, ProductsOfQwen3AreDividedEvenly) {
  struct Product {
    int64_t columns;
    int tiles;
    int64_t busiest;
  };
  // 128 of 132 multiprocessors have as much to do as the busiest one, but for the head, where all
  // have.
  for (const Product& product :
       {Product{6144, 3, 3}, Product{4096, 2, 2}, Product{24576, 3, 12}, Product{151936, 3, 72}}) {
    SCOPED_TRACE(product.columns);
    const SkinnyTiling tiling = TileSkinnyProduct(product.columns, false, kHopper);
    EXPECT_EQ(tiling.tiles, product.tiles);
    EXPECT_EQ(Busiest(tiling, kHopper), product.busiest);
    EXPECT_GT(static_cast<double>(product.columns) / 16 / kHopper / product.busiest, 0.96);
  }
}

TEST(SkinnyProductTest, PassesHoldAllRows) {
  for (const int rooms : {1, 7, 132, 264}) {
    for (int64_t columns = 1; columns < 5000; columns += 37) {
      const SkinnyTiling tiling = TileSkinnyProduct(columns, false, rooms);
      EXPECT_GE(tiling.passes * tiling.tiles * 16, columns);
      EXPECT_LT((tiling.passes - 1) * tiling.tiles * 16, columns);
    }
  }
}

TEST(SkinnyProductTest, APassOfSwigluIsATileOfGatesAndOneOfTheOthers) {
  const SkinnyTiling tiling = TileSkinnyProduct(2 * 12288, true, kHopper);
  EXPECT_EQ(tiling.tiles, 2);
  EXPECT_EQ(tiling.passes, 768);
  EXPECT_EQ(TileSkinnyProduct(2 * 40, true, kHopper).passes, 3);
}

}  // namespace
}  // namespace tritonrl
