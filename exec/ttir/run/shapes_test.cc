// Operations that move elements about, histograms and gathers.
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "exec/ttir/run/testing/kernel_text.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

std::vector<int32_t> Numbers(size_t count) {
  std::vector<int32_t> values(count);
  std::iota(values.begin(), values.end(), 1);
  return values;
}

// Runs a body that makes %r, `results` numbers, of %x, as many numbers as `x` has.
std::vector<int32_t> RunOn(const std::string& body, std::vector<int32_t> x, size_t results) {
  const auto kernel =
      CompileText(KernelText("%x_ptr: !tt.ptr<i32>, %r_ptr: !tt.ptr<i32>",
                             LoadText("x", "i32", static_cast<int64_t>(x.size())) + body +
                                 StoreText("r", "i32", static_cast<int64_t>(results))));
  std::vector<int32_t> result(results);
  if (kernel == nullptr) return result;
  const absl::Status status =
      kernel->Launch({1, 1, 1}, {ArgumentOf(x), ArgumentOf(result)}, LaunchOptions());
  EXPECT_TRUE(status.ok()) << status;
  return result;
}

TEST(ShapesTest, TransposePermutesAxes) {
  const auto x = Numbers(64);
  const auto result = RunOn(
      "    %a = tt.reshape %x : tensor<64xi32> -> tensor<2x4x8xi32>\n"
      "    %b = tt.trans %a {order = array<i32: 2, 0, 1>} : tensor<2x4x8xi32> -> "
      "tensor<8x2x4xi32>\n"
      "    %r = tt.reshape %b : tensor<8x2x4xi32> -> tensor<64xi32>\n",
      x, 64);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int k = 0; k < 8; ++k) EXPECT_EQ(result[(k * 2 + i) * 4 + j], x[(i * 4 + j) * 8 + k]);
    }
  }
}

TEST(ShapesTest, BroadcastRepeatsRowsAndColumns) {
  const auto x = Numbers(8);
  const auto result = RunOn(
      "    %a = tt.expand_dims %x {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>\n"
      "    %b = tt.expand_dims %x {axis = 0 : i32} : tensor<8xi32> -> tensor<1x8xi32>\n"
      "    %t = arith.constant dense<100> : tensor<8x1xi32>\n"
      "    %c = arith.muli %a, %t : tensor<8x1xi32>\n"
      "    %d = tt.broadcast %c : tensor<8x1xi32> -> tensor<8x8xi32>\n"
      "    %e = tt.broadcast %b : tensor<1x8xi32> -> tensor<8x8xi32>\n"
      "    %f = arith.addi %d, %e : tensor<8x8xi32>\n"
      "    %r = tt.reshape %f : tensor<8x8xi32> -> tensor<64xi32>\n",
      x, 64);
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) EXPECT_EQ(result[i * 8 + j], 100 * x[i] + x[j]);
  }
}

TEST(ShapesTest, JoinAndSplitTakeTurns) {
  const auto x = Numbers(16);
  const auto result = RunOn(
      "    %a = tt.reshape %x : tensor<16xi32> -> tensor<8x2xi32>\n"
      "    %l, %h = tt.split %a : tensor<8x2xi32> -> tensor<8xi32>\n"
      "    %j = tt.join %h, %l : tensor<8xi32> -> tensor<8x2xi32>\n"
      "    %k = tt.reshape %j : tensor<8x2xi32> -> tensor<16xi32>\n"
      "    %r = tt.cat %k, %x : tensor<16xi32> -> tensor<32xi32>\n",
      x, 32);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(result[i], x[i ^ 1]);
    EXPECT_EQ(result[16 + i], x[i]);
  }
}

TEST(ShapesTest, GatherTakesElementsAlongAnAxis) {
  const std::vector<int32_t> x = {3, 1, 2, 0, 1, 1, 3, 3};
  const auto result = RunOn(
      "    %a = tt.reshape %x : tensor<8xi32> -> tensor<4x2xi32>\n"
      "    %b = tt.gather %a[%a] {axis = 0 : i32} : (tensor<4x2xi32>, tensor<4x2xi32>) -> "
      "tensor<4x2xi32>\n"
      "    %r = tt.reshape %b : tensor<4x2xi32> -> tensor<8xi32>\n",
      x, 8);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 2; ++j) {
      EXPECT_EQ(result[i * 2 + j], x[static_cast<size_t>(x[i * 2 + j]) * 2 + j]);
    }
  }
}

TEST(ShapesTest, AGathersIndexMustBeInTheAxis) {
  const auto kernel = CompileText(KernelText(
      "%x_ptr: !tt.ptr<i32>, %r_ptr: !tt.ptr<i32>",
      LoadText("x", "i32", 8) +
          "    %r = tt.gather %x[%x] {axis = 0 : i32} : (tensor<8xi32>, tensor<8xi32>) -> "
          "tensor<8xi32> loc(\"kernel.py\":7:3)\n" +
          StoreText("r", "i32", 8)));
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x = {0, 1, 2, 8, 0, 0, 0, 0};
  std::vector<int32_t> r(8);
  const absl::Status status =
      kernel->Launch({1, 1, 1}, {ArgumentOf(x), ArgumentOf(r)}, LaunchOptions());
  EXPECT_EQ(
      status.message(),
      "gather of kernel k: index 8 of element 3 is not in [0, 8), program (0, 0, 0), line 7 of "
      "kernel.py");
}

TEST(ShapesTest, HistogramCountsWhatIsInRangeAndActive) {
  const std::vector<int32_t> x = {0, 1, 1, 3, 3, 3, -1, 4};
  const auto result = RunOn(
      "    %one = arith.constant dense<1> : tensor<8xi32>\n"
      "    %m = arith.cmpi ne, %x, %one : tensor<8xi32>\n"
      "    %a = tt.histogram %x : tensor<8xi32> -> tensor<4xi32>\n"
      "    %b = tt.histogram %x, %m : tensor<8xi32> -> tensor<4xi32>\n"
      "    %r = tt.cat %a, %b : tensor<4xi32> -> tensor<8xi32>\n",
      x, 8);
  EXPECT_EQ(result, (std::vector<int32_t>{1, 2, 0, 3, 1, 0, 0, 3}));
}

// As on a GPU, which looks at the lowest bits: 5 at least.
TEST(ShapesTest, HistogramWrapsAround) {
  std::vector<int32_t> x(64);
  for (int i = 0; i < 64; ++i) x[i] = i - 8;
  const std::string count = "    %r = tt.histogram %x : tensor<64xi32> -> ";
  EXPECT_EQ(RunOn(count + "tensor<32xi32>\n", x, 32), std::vector<int32_t>(32, 2));
  EXPECT_EQ(RunOn(count + "tensor<4xi32>\n", x, 4), std::vector<int32_t>(4, 2));
  EXPECT_EQ(RunOn(count + "tensor<64xi32>\n", x, 64), std::vector<int32_t>(64, 1));
}

TEST(ShapesTest, ConstantsWithManyNumbers) {
  const auto result = RunOn(
      "    %c = arith.constant dense<[5, -6, 7, 8]> : tensor<4xi32>\n"
      "    %r = arith.addi %c, %x : tensor<4xi32>\n",
      {1, 1, 1, 1}, 4);
  EXPECT_EQ(result, (std::vector<int32_t>{6, -5, 8, 9}));
}

}  // namespace
}  // namespace tritonrl::ttir
