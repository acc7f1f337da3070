// Reductions, scans and maps.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/substitute.h"
#include "exec/ttir/run/testing/kernel_text.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

constexpr int kRows = 8;
constexpr int kColumns = 16;

std::vector<int32_t> Matrix() {
  std::mt19937 random(30);
  std::vector<int32_t> x(kRows * kColumns);
  for (int32_t& value : x) value = static_cast<int32_t>(random() % 200) - 100;
  return x;
}

// Launches a kernel of %x_ptr and %r_ptr whose %x is a matrix.
std::vector<int32_t> RunOn(const std::string& body, const std::string& store, size_t results) {
  const auto kernel = CompileText(KernelText(
      "%x_ptr: !tt.ptr<i32>, %r_ptr: !tt.ptr<i32>",
      LoadText("x", "i32", kRows * kColumns) +
          "    %m = tt.reshape %x : tensor<128xi32> -> tensor<8x16xi32>\n" + body + store));
  std::vector<int32_t> x = Matrix();
  std::vector<int32_t> result(results);
  if (kernel == nullptr) return result;
  const absl::Status status =
      kernel->Launch({1, 1, 1}, {ArgumentOf(x), ArgumentOf(result)}, LaunchOptions());
  EXPECT_TRUE(status.ok()) << status;
  return result;
}

// A reduction of the matrix along an axis by the region's lines, which make %c of %a and %b.
std::vector<int32_t> Reduce(int axis, const std::string& lines) {
  const int results = axis == 0 ? kColumns : kRows;
  return RunOn(absl::Substitute("    %r = \"tt.reduce\"(%m) <{axis = $0 : i32}> ({\n"
                                "    ^bb0(%a: i32, %b: i32):\n$1"
                                "      tt.reduce.return %c : i32\n"
                                "    }) : (tensor<8x16xi32>) -> tensor<$2xi32>\n",
                                axis, lines, results),
               StoreText("r", "i32", results), static_cast<size_t>(results));
}

int32_t Fold(int axis, int at, const std::function<int32_t(int32_t, int32_t)>& combine) {
  const std::vector<int32_t> x = Matrix();
  const int count = axis == 0 ? kRows : kColumns;
  const auto element = [&](int i) {
    return axis == 0 ? x[i * kColumns + at] : x[at * kColumns + i];
  };
  int32_t result = element(0);
  for (int i = 1; i < count; ++i) result = combine(result, element(i));
  return result;
}

TEST(ReduceTest, OneOperationAlongEachAxis) {
  for (const int axis : {0, 1}) {
    const auto sum = Reduce(axis, "      %c = arith.addi %a, %b : i32\n");
    const auto largest = Reduce(axis, "      %c = arith.maxsi %b, %a : i32\n");
    const auto bits = Reduce(axis, "      %c = arith.xori %a, %b : i32\n");
    for (size_t i = 0; i < sum.size(); ++i) {
      const int at = static_cast<int>(i);
      EXPECT_EQ(sum[i], Fold(axis, at, std::plus<>()));
      EXPECT_EQ(largest[i], Fold(axis, at, [](int32_t a, int32_t b) { return std::max(a, b); }));
      EXPECT_EQ(bits[i], Fold(axis, at, std::bit_xor<>()));
    }
  }
}

TEST(ReduceTest, ARegionOfSeveralOperations) {
  for (const int axis : {0, 1}) {
    const auto result = Reduce(axis,
                               "      %k = arith.constant 1 : i32\n"
                               "      %d = arith.cmpi slt, %a, %b : i32\n"
                               "      %e = arith.select %d, %a, %b : i32\n"
                               "      %f = arith.addi %e, %k : i32\n"
                               "      %c = arith.subi %f, %k : i32\n");
    for (size_t i = 0; i < result.size(); ++i) {
      EXPECT_EQ(result[i], Fold(axis, static_cast<int>(i),
                                [](int32_t a, int32_t b) { return std::min(a, b); }));
    }
  }
}

TEST(ReduceTest, ARegionWithABranchRunsForEachPair) {
  const auto result = Reduce(1,
                             "      %d = arith.cmpi slt, %a, %b : i32\n"
                             "      %c = scf.if %d -> (i32) {\n"
                             "        scf.yield %b : i32\n"
                             "      } else {\n"
                             "        scf.yield %a : i32\n"
                             "      }\n");
  for (size_t i = 0; i < result.size(); ++i) {
    EXPECT_EQ(result[i],
              Fold(1, static_cast<int>(i), [](int32_t a, int32_t b) { return std::max(a, b); }));
  }
}

TEST(ReduceTest, SeveralOperandsFindTheFirstMaximum) {
  const auto result = RunOn(
      "    %n = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>\n"
      "    %o = tt.expand_dims %n {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>\n"
      "    %p = tt.broadcast %o : tensor<1x16xi32> -> tensor<8x16xi32>\n"
      "    %q, %r = \"tt.reduce\"(%m, %p) <{axis = 1 : i32}> ({\n"
      "    ^bb0(%a: i32, %i: i32, %b: i32, %j: i32):\n"
      "      %e = arith.cmpi eq, %a, %b : i32\n"
      "      %f = arith.cmpi slt, %i, %j : i32\n"
      "      %g = arith.andi %e, %f : i1\n"
      "      %h = arith.cmpi sgt, %a, %b : i32\n"
      "      %k = arith.ori %h, %g : i1\n"
      "      %v = arith.select %k, %a, %b : i32\n"
      "      %w = arith.select %k, %i, %j : i32\n"
      "      tt.reduce.return %v, %w : i32, i32\n"
      "    }) : (tensor<8x16xi32>, tensor<8x16xi32>) -> (tensor<8xi32>, tensor<8xi32>)\n",
      StoreText("r", "i32", 8), 8);
  const std::vector<int32_t> x = Matrix();
  for (int i = 0; i < kRows; ++i) {
    const auto row = x.begin() + i * kColumns;
    EXPECT_EQ(result[i], std::max_element(row, row + kColumns) - row);
  }
}

TEST(ReduceTest, FloatsAreAddedByHalves) {
  std::vector<float> x = {1e8f, 1.0f, -1e8f, 1.0f};
  const auto kernel = CompileText(
      KernelText("%x_ptr: !tt.ptr<f32>, %r_ptr: !tt.ptr<f32>",
                 LoadText("x", "f32", 4) + "    %s = \"tt.reduce\"(%x) <{axis = 0 : i32}> ({\n"
                                           "    ^bb0(%a: f32, %b: f32):\n"
                                           "      %c = arith.addf %a, %b : f32\n"
                                           "      tt.reduce.return %c : f32\n"
                                           "    }) : (tensor<4xf32>) -> f32\n"
                                           "    tt.store %r_ptr, %s : !tt.ptr<f32>\n"));
  ASSERT_NE(kernel, nullptr);
  std::vector<float> r(1);
  ASSERT_TRUE(kernel->Launch({1, 1, 1}, {ArgumentOf(x), ArgumentOf(r)}, LaunchOptions()).ok());
  EXPECT_EQ(r[0], 2.0f);  // (1e8 - 1e8) + (1 + 1)
}

// A scan of the matrix; the region's lines make %c of %a and %b.
std::vector<int32_t> Scan(int axis, bool reverse, const std::string& lines) {
  return RunOn(absl::Substitute("    %s = \"tt.scan\"(%m) <{axis = $0 : i32, reverse = $1}> ({\n"
                                "    ^bb0(%a: i32, %b: i32):\n$2"
                                "      tt.scan.return %c : i32\n"
                                "    }) : (tensor<8x16xi32>) -> tensor<8x16xi32>\n"
                                "    %r = tt.reshape %s : tensor<8x16xi32> -> tensor<128xi32>\n",
                                axis, reverse ? "true" : "false", lines),
               StoreText("r", "i32", kRows * kColumns), kRows * kColumns);
}

TEST(ScanTest, SumsAndRegionsInBothDirections) {
  const std::string region =
      "      %k = arith.constant 3 : i32\n"
      "      %d = arith.addi %a, %k : i32\n"
      "      %e = arith.addi %d, %b : i32\n"
      "      %c = arith.subi %e, %k : i32\n";
  const std::vector<int32_t> x = Matrix();
  for (const bool reverse : {false, true}) {
    for (const int axis : {0, 1}) {
      std::vector<int32_t> expected = x;
      const int step = axis == 0 ? kColumns : 1;
      for (int n = 0; n < kRows * kColumns; ++n) {
        const int i = reverse ? kRows * kColumns - 1 - n : n;
        const int along = axis == 0 ? i / kColumns : i % kColumns;
        const int last = axis == 0 ? kRows - 1 : kColumns - 1;
        if (along == (reverse ? last : 0)) continue;
        expected[i] += expected[reverse ? i + step : i - step];
      }
      EXPECT_EQ(Scan(axis, reverse, "      %c = arith.addi %a, %b : i32\n"), expected);
      EXPECT_EQ(Scan(axis, reverse, region), expected);
    }
  }
}

TEST(ScanTest, ARegionWithABranchAndWithoutSymmetry) {
  // b unless it is 0: the last element that is not.
  const std::vector<int32_t> x = {0, 3, 0, 0, 5, 0, 7, 0};
  const auto kernel =
      CompileText(KernelText("%x_ptr: !tt.ptr<i32>, %r_ptr: !tt.ptr<i32>",
                             LoadText("x", "i32", 8) +
                                 "    %z = arith.constant 0 : i32\n"
                                 "    %r = \"tt.scan\"(%x) <{axis = 0 : i32, reverse = false}> ({\n"
                                 "    ^bb0(%a: i32, %b: i32):\n"
                                 "      %d = arith.cmpi eq, %b, %z : i32\n"
                                 "      %c = scf.if %d -> (i32) {\n"
                                 "        scf.yield %a : i32\n"
                                 "      } else {\n"
                                 "        scf.yield %b : i32\n"
                                 "      }\n"
                                 "      tt.scan.return %c : i32\n"
                                 "    }) : (tensor<8xi32>) -> tensor<8xi32>\n" +
                                 StoreText("r", "i32", 8)));
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> in = x;
  std::vector<int32_t> r(8);
  ASSERT_TRUE(kernel->Launch({1, 1, 1}, {ArgumentOf(in), ArgumentOf(r)}, LaunchOptions()).ok());
  EXPECT_EQ(r, (std::vector<int32_t>{0, 3, 3, 3, 5, 5, 7, 7}));
}

TEST(MapTest, NeighboursGoThroughTheRegionTogether) {
  const auto result = RunOn(
      "    %r = \"tt.map_elementwise\"(%x) <{pack = 2 : i32}> ({\n"
      "    ^bb0(%a: i32, %b: i32):\n"
      "      %c = arith.subi %a, %b : i32\n"
      "      tt.map_elementwise.return %b, %c : i32, i32\n"
      "    }) : (tensor<128xi32>) -> tensor<128xi32>\n",
      StoreText("r", "i32", 128), 128);
  const std::vector<int32_t> x = Matrix();
  for (size_t i = 0; i < 128; i += 2) {
    EXPECT_EQ(result[i], x[i + 1]);
    EXPECT_EQ(result[i + 1], x[i] - x[i + 1]);
  }
}

}  // namespace
}  // namespace tritonrl::ttir
