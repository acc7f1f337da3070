// Block pointers and tensor descriptors.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/substitute.h"
#include "exec/ttir/run/testing/kernel_text.h"
#include "exec/ttir/testing/corpus.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

constexpr char kArguments[] = "%x_ptr: !tt.ptr<f32>, %r_ptr: !tt.ptr<f32>, %m: i64, %n: i64";

// Blocks of 4 x 8 along the columns of x [m][n] go to r, which is 8 columns wide.
std::string CopyBlocks(const std::string& load_attributes) {
  return KernelText(
      kArguments,
      absl::Substitute(
          "    %c0 = arith.constant 0 : i32\n"
          "    %c2 = arith.constant 2 : i32\n"
          "    %c4 = arith.constant 4 : i32\n"
          "    %c8 = arith.constant 8 : i32\n"
          "    %c1 = arith.constant 1 : i32\n"
          "    %one = arith.constant 1 : i64\n"
          "    %eight = arith.constant 8 : i64\n"
          "    %rows = arith.constant 16 : i64\n"
          "    %x = tt.make_tensor_ptr %x_ptr, [%m, %n], [%n, %one], [%c0, %c4]"
          " {order = array<i32: 1, 0>} : <tensor<4x8xf32>>\n"
          "    %r = tt.make_tensor_ptr %r_ptr, [%rows, %eight], [%eight, %one], [%c0, %c0]"
          " {order = array<i32: 1, 0>} : <tensor<4x8xf32>>\n"
          "    %end:2 = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %x, %b = %r)"
          " -> (!tt.ptr<tensor<4x8xf32>>, !tt.ptr<tensor<4x8xf32>>) : i32 {\n"
          "      %v = tt.load %a {$0} : !tt.ptr<tensor<4x8xf32>> loc(\"kernel.py\":9:1)\n"
          "      tt.store %b, %v : !tt.ptr<tensor<4x8xf32>>\n"
          "      %a2 = tt.advance %a, [%c0, %c8] : <tensor<4x8xf32>>\n"
          "      %b2 = tt.advance %b, [%c4, %c0] : <tensor<4x8xf32>>\n"
          "      scf.yield %a2, %b2 : !tt.ptr<tensor<4x8xf32>>, !tt.ptr<tensor<4x8xf32>>\n"
          "    }\n",
          load_attributes));
}

// Two times the block of 32 x 64 at (row, 64) of the source goes to (row, 0) of the target.
TEST(DescriptorTest, TheHostMakesThem) {
  const auto kernel = CompileText(CorpusTextOf("host_descriptors.ttir"));
  ASSERT_NE(kernel, nullptr);
  constexpr int64_t kRows = 40;
  constexpr int64_t kColumns = 128;
  alignas(16) static uint16_t source[kRows * kColumns];
  alignas(16) static uint16_t target[kRows * kColumns];
  std::fill(std::begin(source), std::end(source), 0x3C00);  // 1
  const auto launch = [&](int64_t stride, int64_t columns, bool nan, LaunchFindings* findings) {
    std::fill(std::begin(target), std::end(target), 0);
    std::vector<KernelArgument> arguments;
    for (uint16_t* data : {source, target}) {
      arguments.push_back(KernelArgument::Tensor(data, sizeof(source)));
      for (const int64_t number :
           {kRows, columns, stride, int64_t{1}, int64_t{nan}, kRows, columns, stride, int64_t{1}}) {
        arguments.push_back(KernelArgument::Integer(number));
      }
    }
    arguments.push_back(KernelArgument::Integer(16));
    LaunchOptions options;
    options.check = findings;
    EXPECT_TRUE(kernel->Launch({1, 1, 1}, arguments, options).ok());
  };
  LaunchFindings findings;
  launch(kColumns, kColumns, false, &findings);
  EXPECT_TRUE(findings.list.empty()) << findings.list[0].text;
  EXPECT_EQ(target[16 * kColumns], 0x4000);  // 2
  EXPECT_EQ(target[16 * kColumns + 64], 0);
  EXPECT_EQ(target[15 * kColumns], 0);
  EXPECT_EQ(target[39 * kColumns + 63], 0x4000);
  // Columns from 100 on are outside, and pad.
  for (const bool nan : {false, true}) {
    launch(kColumns, 100, nan, nullptr);
    EXPECT_EQ(target[16 * kColumns + 35], 0x4000);
    EXPECT_EQ(target[16 * kColumns + 36] & 0x7E00, nan ? 0x7E00 : 0);
  }
  launch(101, 101, false, &findings);
  ASSERT_EQ(findings.list.size(), 2u);
  EXPECT_EQ(findings.list[0].kind, Finding::Kind::kDescriptor);
  EXPECT_EQ(findings.list[0].place, "line 217 of exec/ttir/testing/control_kernels.py");
}

TEST(BlockPointerTest, AdvancesAndPadsWhatIsOutside) {
  for (const bool nan : {false, true}) {
    const auto kernel = CompileText(CopyBlocks(
        absl::Substitute("boundaryCheck = array<i32: 0, 1>, padding = $0 : i32", nan ? 2 : 1)));
    ASSERT_NE(kernel, nullptr);
    constexpr int kRows = 3;
    constexpr int kColumns = 14;
    std::vector<float> x(kRows * kColumns);
    std::iota(x.begin(), x.end(), 1.0f);
    std::vector<float> r(64, -1);
    const absl::Status status =
        kernel->Launch({1, 1, 1},
                       {ArgumentOf(x), ArgumentOf(r), KernelArgument::Integer(kRows),
                        KernelArgument::Integer(kColumns)},
                       LaunchOptions());
    ASSERT_TRUE(status.ok()) << status;
    for (int i = 0; i < 64; ++i) {
      const int row = i / 8 % 4;
      const int column = 4 + i / 32 * 8 + i % 8;
      if (row < kRows && column < kColumns) {
        EXPECT_EQ(r[i], x[row * kColumns + column]) << i;
      } else {
        EXPECT_TRUE(nan ? std::isnan(r[i]) : r[i] == 0) << i;
      }
    }
  }
}

TEST(BlockPointerTest, AnAxisWithoutCheckMayReadOutOfBounds) {
  const auto kernel = CompileText(CopyBlocks("boundaryCheck = array<i32: 1>"));
  ASSERT_NE(kernel, nullptr);
  std::vector<float> x(3 * 14);
  std::vector<float> r(64);
  const absl::Status status = kernel->Launch(
      {1, 1, 1},
      {ArgumentOf(x), ArgumentOf(r), KernelArgument::Integer(3), KernelArgument::Integer(14)},
      LaunchOptions());
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(absl::StrContains(
      status.message(),
      "load of kernel k: 8 of 32 elements are out of bounds of argument x_ptr (168 bytes), first "
      "at byte 184, element 24, program (0, 0, 0), line 9 of kernel.py"))
      << status;
}

TEST(BlockPointerTest, ASecondBlockOfAnyNumbersTouchesNothingElse) {
  const auto kernel = CompileText(CopyBlocks("boundaryCheck = array<i32: 0, 1>"));
  ASSERT_NE(kernel, nullptr);
  std::vector<float> x(8, 1.0f);
  std::vector<float> r(64);
  for (const int64_t m : {INT64_MAX, INT64_MIN, int64_t{-1}, int64_t{2}}) {
    for (const int64_t n : {INT64_MAX, INT64_MIN, int64_t{-1}, int64_t{1} << 46}) {
      const absl::Status status = kernel->Launch(
          {1, 1, 1},
          {ArgumentOf(x), ArgumentOf(r), KernelArgument::Integer(m), KernelArgument::Integer(n)},
          LaunchOptions());
      EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kOutOfRange) << status;
    }
  }
}

// The corpus: c = a b^T by descriptors, stored and then added once more.
TEST(DescriptorTest, LoadsStoresAndAdds) {
  const auto kernel = CompileText(CorpusTextOf("descriptors.ttir"));
  ASSERT_NE(kernel, nullptr);
  constexpr int kM = 70;
  constexpr int kN = 64;  // outside of b is NaN
  constexpr int kK = 64;
  std::vector<uint16_t> a(kM * kK);
  std::vector<uint16_t> b(kN * kK);
  // 0, 1 and 2 in f16.
  constexpr uint16_t kBits[] = {0x0000, 0x3C00, 0x4000};
  for (int i = 0; i < kM * kK; ++i) a[i] = kBits[i % 7 % 3];
  for (int i = 0; i < kN * kK; ++i) b[i] = kBits[i % 5 % 3];
  std::vector<float> c(kM * kN, -1);
  LaunchOptions options;
  options.threads = 2;
  const absl::Status status =
      kernel->Launch({2, 1, 1},
                     {ArgumentOf(a), ArgumentOf(b), ArgumentOf(c), KernelArgument::Integer(kM),
                      KernelArgument::Integer(kN), KernelArgument::Integer(kK)},
                     options);
  ASSERT_TRUE(status.ok()) << status;
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      int sum = 0;
      for (int k = 0; k < kK; ++k) sum += (i * kK + k) % 7 % 3 * ((j * kK + k) % 5 % 3);
      ASSERT_EQ(c[i * kN + j], 2 * sum) << i << ", " << j;
    }
  }
}

TEST(DescriptorTest, RowsAreGatheredAndScattered) {
  const auto kernel = CompileText(KernelText(
      "%x_ptr: !tt.ptr<f32>, %y_ptr: !tt.ptr<i32>, %r_ptr: !tt.ptr<f32>, %m: i32, %n: i32",
      LoadText("y", "i32", 4) +
          "    %one = arith.constant 1 : i64\n"
          "    %c2 = arith.constant 2 : i32\n"
          "    %c0 = arith.constant 0 : i32\n"
          "    %stride = arith.extsi %n : i32 to i64\n"
          "    %x = tt.make_tensor_descriptor %x_ptr, [%m, %n], [%stride, %one] : <f32>, "
          "<tensor<1x8xf32>>\n"
          "    %r = tt.make_tensor_descriptor %r_ptr, [%m, %n], [%stride, %one] : <f32>, "
          "<tensor<1x8xf32>>\n"
          "    %v = tt.descriptor_gather %x[%y, %c2] : (!tt.tensordesc<tensor<1x8xf32>>, "
          "tensor<4xi32>, i32) -> tensor<4x8xf32>\n"
          "    tt.descriptor_scatter %r[%y, %c0], %v : !tt.tensordesc<tensor<1x8xf32>>, "
          "tensor<4xi32>, i32, tensor<4x8xf32>\n"));
  ASSERT_NE(kernel, nullptr);
  constexpr int kRows = 6;
  constexpr int kColumns = 9;
  std::vector<float> x(kRows * kColumns);
  std::iota(x.begin(), x.end(), 1.0f);
  std::vector<int32_t> rows = {5, 0, -1, 3};  // -1 is outside
  std::vector<float> r(x.size(), -1);
  const absl::Status status =
      kernel->Launch({1, 1, 1},
                     {ArgumentOf(x), ArgumentOf(rows), ArgumentOf(r),
                      KernelArgument::Integer(kRows), KernelArgument::Integer(kColumns)},
                     LaunchOptions());
  ASSERT_TRUE(status.ok()) << status;
  for (int i = 0; i < kRows * kColumns; ++i) {
    const int row = i / kColumns;
    const int column = i % kColumns;
    const bool written = (row == 5 || row == 0 || row == 3) && column < 8;
    const float moved = column + 2 < kColumns ? x[i + 2] : 0;
    EXPECT_EQ(r[i], written ? moved : -1) << i;
  }
}

}  // namespace
}  // namespace tritonrl::ttir
