// Findings of launches about single operations and arguments.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "exec/ttir/run/testing/kernel_text.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

using Kind = Finding::Kind;

using Texts = std::vector<std::string>;

// r = x OPERATION y
std::unique_ptr<Kernel> BinaryKernel(const std::string& operation, const std::string& element) {
  return CompileText(KernelText(
      absl::StrCat("%x_ptr: !tt.ptr<", element, ">, %y_ptr: !tt.ptr<", element,
                   ">, %r_ptr: !tt.ptr<", element, ">"),
      absl::StrCat(LoadText("x", element, 32), LoadText("y", element, 32), "    %r = ", operation,
                   " %x, %y : tensor<32x", element, ">\n", StoreText("r", element, 32))));
}

template <typename T>
LaunchFindings CheckBinary(const std::string& operation, const std::string& element, T second) {
  const auto kernel = BinaryKernel(operation, element);
  if (kernel == nullptr) return {};
  std::vector<T> x(32, 5);
  std::vector<T> y(32, 2);
  std::vector<T> r(32);
  y[7] = second;
  return Check(*kernel, {ArgumentOf(x), ArgumentOf(y), ArgumentOf(r)});
}

TEST(ChecksTest, DivisionByZero) {
  for (const std::string operation : {"arith.divsi", "arith.divui", "arith.remsi", "arith.remui",
                                      "arith.floordivsi", "arith.ceildivsi", "arith.ceildivui"}) {
    EXPECT_TRUE(CheckBinary<int32_t>(operation, "i32", -1).list.empty()) << operation;
    const LaunchFindings findings = CheckBinary<int32_t>(operation, "i32", 0);
    EXPECT_EQ(TextsOf(findings, Kind::kDivisionByZero),
              Texts({"an integer is divided by 0: 1 of 32 elements, first element 7; a store "
                     "depends on it (unknown line)"}))
        << operation;
    ASSERT_EQ(findings.list.size(), 1u);
    EXPECT_EQ(findings.list[0].element, 7);
    EXPECT_EQ(findings.list[0].kernel, "k");
  }
  EXPECT_EQ(CheckBinary<int8_t>("arith.remui", "i8", 0).list.size(), 1u);
  EXPECT_EQ(CheckBinary<int64_t>("arith.divsi", "i64", 0).list.size(), 1u);
  EXPECT_TRUE(CheckBinary<int64_t>("arith.divsi", "i64", int64_t{1} << 32).list.empty());
}

TEST(ChecksTest, WideShifts) {
  for (const std::string operation : {"arith.shli", "arith.shrsi", "arith.shrui"}) {
    EXPECT_TRUE(CheckBinary<int32_t>(operation, "i32", 31).list.empty()) << operation;
    EXPECT_EQ(TextsOf(CheckBinary<int32_t>(operation, "i32", 32), Kind::kWideShift),
              Texts({"a number of 32 bits is shifted by 32 places: 1 of 32 elements, first element "
                     "7; a store depends on it (unknown line)"}))
        << operation;
    EXPECT_EQ(CheckBinary<int32_t>(operation, "i32", -1).list.size(), 1u);
    EXPECT_EQ(CheckBinary<int16_t>(operation, "i16", 16).list.size(), 1u);
    EXPECT_TRUE(CheckBinary<int64_t>(operation, "i64", 63).list.empty());
    EXPECT_EQ(CheckBinary<int64_t>(operation, "i64", 64).list.size(), 1u);
  }
}

// Divides where the program's branch is taken only; the division depends on arguments alone.
TEST(ChecksTest, OperationsOfOtherBranchesDoNotRun) {
  const auto kernel = CompileText(KernelText("%x_ptr: !tt.ptr<i32>, %n: i32, %take: i1", R"(
    scf.if %take {
      %one = arith.constant 1 : i32
      %bad = arith.constant 32 : i32
      %q = arith.divsi %one, %n : i32
      %s = arith.shli %one, %bad : i32
      %r = arith.addi %q, %s : i32
      tt.store %x_ptr, %r : !tt.ptr<i32>
    }
)"));
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x(1);
  const auto check = [&](int64_t n, int64_t take) {
    return Check(*kernel,
                 {ArgumentOf(x), KernelArgument::Integer(n), KernelArgument::Integer(take)}, 3);
  };
  EXPECT_TRUE(check(0, 0).list.empty());
  const LaunchFindings findings = check(0, 1);
  ASSERT_EQ(findings.list.size(), 3u);  // and stores of the same value
  EXPECT_EQ(findings.list[0].kind, Kind::kDivisionByZero);
  EXPECT_EQ(findings.list[1].kind, Kind::kWideShift);
  EXPECT_EQ(findings.list[2].kind, Kind::kRace);
}

TEST(ChecksTest, HistogramsOfValuesWithoutABin) {
  const auto kernel =
      CompileText(KernelText("%x_ptr: !tt.ptr<i32>, %a_ptr: !tt.ptr<i32>, %b_ptr: !tt.ptr<i32>",
                             LoadText("x", "i32", 32) + R"(
    %limit = arith.constant dense<8> : tensor<32xi32>
    %m = arith.cmpi ult, %x, %limit : tensor<32xi32>
    %a = tt.histogram %x, %m : tensor<32xi32> -> tensor<8xi32>
    %b = tt.histogram %x : tensor<32xi32> -> tensor<8xi32>
)" + StoreText("a", "i32", 8) + StoreText("b", "i32", 8)));
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x(32, 7);
  std::vector<int32_t> a(8);
  std::vector<int32_t> b(8);
  EXPECT_TRUE(Check(*kernel, {ArgumentOf(x), ArgumentOf(a), ArgumentOf(b)}).list.empty());
  x[3] = 8;
  x[9] = -1;
  const LaunchFindings findings = Check(*kernel, {ArgumentOf(x), ArgumentOf(a), ArgumentOf(b)});
  EXPECT_EQ(TextsOf(findings, Kind::kHistogram),
            Texts({"program (0, 0, 0) counts values outside of the histogram's bins [0, 8): 2 "
                   "elements, first element 3, which is 8; a GPU counts them in other bins"}));
  EXPECT_EQ(findings.list[0].element, 3);
  EXPECT_EQ(a[7], 30);
}

TEST(ChecksTest, ConstantOperandsAreSeenToo) {
  for (const int by : {0, 3}) {
    const auto kernel = CompileText(KernelText(
        "%x_ptr: !tt.ptr<i32>, %r_ptr: !tt.ptr<i32>",
        LoadText("x", "i32", 32) +
            absl::StrCat("    %y = arith.constant dense<", by,
                         "> : tensor<32xi32>\n    %r = arith.remsi %x, %y : tensor<32xi32>\n") +
            StoreText("r", "i32", 32)));
    ASSERT_NE(kernel, nullptr);
    std::vector<int32_t> x(32, 5);
    std::vector<int32_t> r(32);
    EXPECT_EQ(Check(*kernel, {ArgumentOf(x), ArgumentOf(r)}).list.size(), by == 0 ? 1u : 0u);
  }
}

TEST(ChecksTest, DeclaredDivisibility) {
  const auto kernel =
      CompileText(KernelText("%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, "
                             "%n: i32 {tt.divisibility = 8 : i32}, %m: i32",
                             ""));
  ASSERT_NE(kernel, nullptr);
  alignas(16) float x[8] = {};
  const auto check = [&](int64_t first, int64_t n) {
    return TextsOf(Check(*kernel, {KernelArgument::View(x + first, x, 32),
                                   KernelArgument::Integer(n), KernelArgument::Integer(5)}),
                   Kind::kDivisibility);
  };
  EXPECT_EQ(check(4, 24), Texts());
  EXPECT_EQ(check(0, -16), Texts());
  EXPECT_EQ(check(1, 8), Texts({"the address of argument x_ptr is declared to be a multiple of 16 "
                                "and is not (remainder 4)"}));
  EXPECT_EQ(check(0, 20),
            Texts({"argument n, 20, is declared to be a multiple of 8 and is not (remainder 4)"}));
}

// Loads 32 numbers from x on, of which n are active.
TEST(ChecksTest, AccessesOutsideOfAViewInItsStorage) {
  const auto kernel = CompileText(KernelText("%x_ptr: !tt.ptr<i32>, %n: i32", R"(
    %i = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %limit = tt.splat %n : i32 -> tensor<32xi32>
    %mask = arith.cmpi slt, %i, %limit : tensor<32xi32>
    %s = tt.splat %x_ptr : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
    %at = tt.addptr %s, %i : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
    %x = tt.load %at, %mask : tensor<32x!tt.ptr<i32>>
)"));
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x(64);
  KernelArgument argument = KernelArgument::View(x.data() + 8, x.data(), 256);
  EXPECT_TRUE(Check(*kernel, {argument, KernelArgument::Integer(32)}).list.empty());
  argument.view_bytes = 80;
  EXPECT_TRUE(Check(*kernel, {argument, KernelArgument::Integer(20)}).list.empty());
  EXPECT_EQ(TextsOf(Check(*kernel, {argument, KernelArgument::Integer(32)}), Kind::kOutsideView),
            Texts({"program (0, 0, 0) reads outside of the tensor of argument x_ptr (a view of 20 "
                   "elements), inside of its storage: 12 of 32 elements, first at byte 80 of the "
                   "view"}));
}

// What descriptors of sm_90 demand is looked at where one is used.
TEST(ChecksTest, DescriptorsThatTheHardwareRefuses) {
  const auto kernel = CompileText(
      KernelText("%x_ptr: !tt.ptr<f32>, %stride: i64, %last: i64, %n: i32, %use: i1", R"(
    %zero = arith.constant 0 : i32
    %d = tt.make_tensor_descriptor %x_ptr, [%n, %n], [%stride, %last] : <f32>, <tensor<8x8xf32>>
    scf.if %use {
      %x = tt.descriptor_load %d[%zero, %zero] : !tt.tensordesc<tensor<8x8xf32>> -> tensor<8x8xf32>
    }
)"));
  ASSERT_NE(kernel, nullptr);
  alignas(16) float x[256] = {};
  const auto check = [&](int64_t first, int64_t stride, int64_t last, bool use) {
    const KernelArgument argument = KernelArgument::View(x + first, x, sizeof(x));
    return TextsOf(
        Check(*kernel, {argument, KernelArgument::Integer(stride), KernelArgument::Integer(last),
                        KernelArgument::Integer(8), KernelArgument::Integer(use ? 1 : 0)}),
        Kind::kDescriptor);
  };
  const std::string use = "; an address depends on it (unknown line)";
  EXPECT_EQ(check(0, 8, 1, true), Texts());
  EXPECT_EQ(check(1, 9, 2, false), Texts());
  EXPECT_EQ(check(1, 8, 1, true), Texts({"the address of a tensor descriptor is no multiple of 16 "
                                         "(remainder 4)" +
                                         use}));
  EXPECT_EQ(check(0, 9, 1, true), Texts({"stride 0 of a tensor descriptor is 36 bytes and no "
                                         "multiple of 16" +
                                         use}));
  EXPECT_EQ(check(0, 8, 2, true),
            Texts({"the last stride of a tensor descriptor is 2 and not 1" + use}));
}

class UnwrittenTest : public ::testing::Test {
 protected:
  // Loads 32 numbers of x with a mask of the first n, and adds them to y.
  void SetUp() override {
    kernel_ = CompileText(KernelText("%x_ptr: !tt.ptr<i32>, %y_ptr: !tt.ptr<i32>, %n: i32", R"(
    %i = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %limit = tt.splat %n : i32 -> tensor<32xi32>
    %mask = arith.cmpi slt, %i, %limit : tensor<32xi32>
    %s = tt.splat %x_ptr : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
    %at = tt.addptr %s, %i : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
    %x = tt.load %at, %mask : tensor<32x!tt.ptr<i32>>
    %t = tt.splat %y_ptr : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
    %to = tt.addptr %t, %i : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
    %old = tt.atomic_rmw add, relaxed, gpu, %to, %x, %mask : (tensor<32x!tt.ptr<i32>>, tensor<32xi32>, tensor<32xi1>) -> tensor<32xi32>
    %again = tt.load %to, %mask : tensor<32x!tt.ptr<i32>>
)"));
    ASSERT_NE(kernel_, nullptr);
  }
  LaunchFindings CheckFirst(int64_t n) {
    KernelArgument x = ArgumentOf(x_);
    KernelArgument y = ArgumentOf(y_);
    x.shadow = x_shadow_.data();
    y.shadow = y_shadow_.data();
    return Check(*kernel_, {x, y, KernelArgument::Integer(n)});
  }

  std::unique_ptr<Kernel> kernel_;
  std::vector<int32_t> x_ = std::vector<int32_t>(32);
  std::vector<int32_t> y_ = std::vector<int32_t>(32);
  std::vector<uint8_t> x_shadow_ = std::vector<uint8_t>(128, 1);
  std::vector<uint8_t> y_shadow_ = std::vector<uint8_t>(128, 1);
};

TEST_F(UnwrittenTest, ReadsOfActiveElements) {
  EXPECT_EQ(TextsOf(CheckFirst(32), Kind::kUnwrittenRead), Texts());
  x_shadow_[81] = 0;
  EXPECT_EQ(TextsOf(CheckFirst(20), Kind::kUnwrittenRead), Texts());
  const LaunchFindings findings = CheckFirst(21);
  EXPECT_EQ(TextsOf(findings, Kind::kUnwrittenRead),
            Texts({"program (0, 0, 0) reads memory that nothing wrote: 1 of 21 elements, first at "
                   "byte 80 of argument x_ptr; an atomic operation depends on it (unknown line)"}));
  ASSERT_EQ(findings.list.size(), 1u);
  EXPECT_EQ(findings.list[0].element, 20);
}

TEST_F(UnwrittenTest, AtomicOperationsReadAndWrite) {
  y_shadow_[0] = 0;
  EXPECT_EQ(TextsOf(CheckFirst(32), Kind::kUnwrittenRead),
            Texts({"program (0, 0, 0) changes memory that nothing wrote: 1 of 32 elements, first "
                   "at byte 0 of argument y_ptr"}));
  EXPECT_EQ(y_shadow_[0], 1);
}

TEST(ChecksTest, FindingsAreBounded) {
  std::string body = LoadText("x", "i32", 32);
  for (int i = 0; i < 150; ++i) {
    absl::StrAppend(&body, "    %q", i, " = arith.divsi %x, %x : tensor<32xi32>\n",
                    "    tt.store %x_at, %q", i, " : tensor<32x!tt.ptr<i32>>\n");
  }
  const auto kernel = CompileText(KernelText("%x_ptr: !tt.ptr<i32>", body));
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x(32);
  const LaunchFindings findings = Check(*kernel, {ArgumentOf(x)}, 5);
  EXPECT_EQ(findings.list.size(), kMaxFindings);
  EXPECT_FALSE(findings.complete);
}

TEST(ChecksTest, ErrorsStayErrors) {
  const auto kernel = CompileText(KernelText("%x_ptr: !tt.ptr<i32>", LoadText("x", "i32", 32)));
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x(31);
  LaunchFindings findings;
  LaunchOptions options;
  options.check = &findings;
  EXPECT_EQ(kernel->Launch({1, 1, 1}, {ArgumentOf(x)}, options).code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(findings.list.empty());
  std::vector<int32_t> all(32);
  EXPECT_EQ(kernel->Launch({1 << 30, 1 << 9, 1}, {ArgumentOf(all)}, options).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tritonrl::ttir
