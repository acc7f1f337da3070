// Loads, stores and atomic operations, their checks, and reports.
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "exec/ttir/run/testing/kernel_text.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

// Copies element pid * 16 + i for 16 numbers i, where it is below %n, else -1.
std::string MaskedCopy() {
  return KernelText(
      "%x_ptr: !tt.ptr<i32>, %r_ptr: !tt.ptr<i32>, %n: i32",
      "    %c = arith.constant 16 : i32\n"
      "    %o = arith.constant dense<-1> : tensor<16xi32>\n"
      "    %pid = tt.get_program_id x : i32\n"
      "    %b = arith.muli %pid, %c : i32\n"
      "    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>\n"
      "    %bs = tt.splat %b : i32 -> tensor<16xi32>\n"
      "    %at = arith.addi %bs, %i : tensor<16xi32>\n"
      "    %ns = tt.splat %n : i32 -> tensor<16xi32>\n"
      "    %m = arith.cmpi slt, %at, %ns : tensor<16xi32>\n"
      "    %xs = tt.splat %x_ptr : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>\n"
      "    %xp = tt.addptr %xs, %at : tensor<16x!tt.ptr<i32>>, tensor<16xi32>\n"
      "    %x = tt.load %xp, %m, %o : tensor<16x!tt.ptr<i32>> loc(\"kernel.py\":12:8)\n"
      "    %rs = tt.splat %r_ptr : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>\n"
      "    %rp = tt.addptr %rs, %at : tensor<16x!tt.ptr<i32>>, tensor<16xi32>\n"
      "    tt.store %rp, %x : tensor<16x!tt.ptr<i32>> loc(\"kernel.py\":13:8)\n");
}

TEST(LoadTest, MaskedElementsHaveTheOtherValueOnAnyNumberOfThreads) {
  const auto kernel = CompileText(MaskedCopy());
  ASSERT_NE(kernel, nullptr);
  for (const int threads : {1, 3}) {
    std::vector<int32_t> x(1000);
    std::iota(x.begin(), x.end(), 1);
    std::vector<int32_t> r(1008, 7);
    LaunchOptions options;
    options.threads = threads;
    const absl::Status status = kernel->Launch(
        {63, 1, 1}, {ArgumentOf(x), ArgumentOf(r), KernelArgument::Integer(1000)}, options);
    ASSERT_TRUE(status.ok()) << status;
    for (int i = 0; i < 1008; ++i) EXPECT_EQ(r[i], i < 1000 ? i + 1 : -1) << i;
  }
}

TEST(LoadTest, AnAccessOutOfBoundsIsCountedAndNamed) {
  const auto kernel = CompileText(MaskedCopy());
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x(29);
  std::vector<int32_t> r(32);
  const absl::Status status = kernel->Launch(
      {2, 1, 1}, {ArgumentOf(x), ArgumentOf(r), KernelArgument::Integer(31)}, LaunchOptions());
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(
      status.message(),
      "load of kernel k: 2 of 15 elements are out of bounds of argument x_ptr (116 bytes), first "
      "at byte 116, element 13, program (1, 0, 0), line 12 of kernel.py");
}

TEST(StoreTest, NothingIsWrittenBeyondAnArgument) {
  const auto kernel = CompileText(MaskedCopy());
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x(16);
  std::vector<int32_t> r(16, 5);
  // The kernel may touch the first 15 elements only.
  const absl::Status status = kernel->Launch(
      {1, 1, 1}, {ArgumentOf(x), KernelArgument::Tensor(r.data(), 60), KernelArgument::Integer(16)},
      LaunchOptions());
  EXPECT_TRUE(absl::StrContains(status.message(), "store of kernel k: 1 of 16 elements")) << status;
  EXPECT_EQ(r, std::vector<int32_t>(16, 5));
}

TEST(LoadTest, AViewReachesItsWholeStorage) {
  const auto kernel = CompileText(MaskedCopy());
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x(32);
  std::iota(x.begin(), x.end(), 0);
  std::vector<int32_t> r(16);
  const absl::Status status = kernel->Launch({1, 1, 1},
                                             {KernelArgument::View(x.data() + 8, x.data(), 128),
                                              ArgumentOf(r), KernelArgument::Integer(16)},
                                             LaunchOptions());
  ASSERT_TRUE(status.ok()) << status;
  for (int i = 0; i < 16; ++i) EXPECT_EQ(r[i], 8 + i);
}

TEST(LoadTest, ScatteredAddressesOfTwoArguments) {
  const std::string text =
      KernelText("%x_ptr: !tt.ptr<i16>, %y_ptr: !tt.ptr<i16>, %r_ptr: !tt.ptr<i16>",
                 "    %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>\n"
                 "    %seven = arith.constant dense<7> : tensor<8xi32>\n"
                 "    %four = arith.constant dense<4> : tensor<8xi32>\n"
                 "    %back = arith.subi %seven, %i : tensor<8xi32>\n"
                 "    %c = arith.cmpi slt, %i, %four : tensor<8xi32>\n"
                 "    %xs = tt.splat %x_ptr : !tt.ptr<i16> -> tensor<8x!tt.ptr<i16>>\n"
                 "    %ys = tt.splat %y_ptr : !tt.ptr<i16> -> tensor<8x!tt.ptr<i16>>\n"
                 "    %s = arith.select %c, %xs, %ys : tensor<8xi1>, tensor<8x!tt.ptr<i16>>\n"
                 "    %p = tt.addptr %s, %back : tensor<8x!tt.ptr<i16>>, tensor<8xi32>\n"
                 "    %r = tt.load %p : tensor<8x!tt.ptr<i16>>\n" +
                     StoreText("r", "i16", 8));
  const auto kernel = CompileText(text);
  ASSERT_NE(kernel, nullptr);
  std::vector<int16_t> x = {0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<int16_t> y = {10, 11, 12, 13, 14, 15, 16, 17};
  std::vector<int16_t> r(8);
  const absl::Status status =
      kernel->Launch({1, 1, 1}, {ArgumentOf(x), ArgumentOf(y), ArgumentOf(r)}, LaunchOptions());
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(r, (std::vector<int16_t>{7, 6, 5, 4, 13, 12, 11, 10}));
}

TEST(LoadTest, MisalignedAddressesAndForeignOnesAreErrors) {
  const auto kernel = CompileText(KernelText("%x_ptr: !tt.ptr<i32>, %n: i64",
                                             "    %p = tt.int_to_ptr %n : i64 -> !tt.ptr<i32>\n"
                                             "    %v = tt.load %p : !tt.ptr<i32>\n"
                                             "    tt.store %x_ptr, %v : !tt.ptr<i32>\n"));
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x = {1, 2, 3};
  const auto launch = [&](int64_t address, const LaunchOptions& options) {
    return kernel->Launch({1, 1, 1}, {ArgumentOf(x), KernelArgument::Integer(address)}, options);
  };
  const auto begin = reinterpret_cast<int64_t>(x.data());
  EXPECT_TRUE(absl::StrContains(launch(begin + 2, LaunchOptions()).message(),
                                "1 of 1 elements are misaligned in argument x_ptr (12 bytes)"));
  EXPECT_TRUE(absl::StrContains(launch(64, LaunchOptions()).message(), "are in no argument"));
  EXPECT_TRUE(launch(begin + 8, LaunchOptions()).ok());
  EXPECT_EQ(x[0], 3);
  std::vector<int32_t> other = {9};
  LaunchOptions options;
  options.reachable.push_back({"table", other.data(), 4});
  EXPECT_TRUE(launch(reinterpret_cast<int64_t>(other.data()), options).ok());
  EXPECT_EQ(x[0], 9);
}

TEST(AtomicTest, AddsOfAllProgramsArrive) {
  const auto kernel =
      CompileText(KernelText("%f_ptr: !tt.ptr<f32>, %i_ptr: !tt.ptr<i64>, %h_ptr: !tt.ptr<f16>",
                             "    %one = arith.constant 1.000000e+00 : f32\n"
                             "    %half = arith.constant 1.000000e+00 : f16\n"
                             "    %three = arith.constant 3 : i64\n"
                             "    %true = arith.constant true\n"
                             "    %a = tt.atomic_rmw fadd, acq_rel, gpu, %f_ptr, %one, %true : "
                             "(!tt.ptr<f32>, f32, i1) -> f32\n"
                             "    %b = tt.atomic_rmw add, relaxed, gpu, %i_ptr, %three, %true : "
                             "(!tt.ptr<i64>, i64, i1) -> i64\n"
                             "    %c = tt.atomic_rmw fadd, acq_rel, gpu, %h_ptr, %half, %true : "
                             "(!tt.ptr<f16>, f16, i1) -> "
                             "f16\n"));
  ASSERT_NE(kernel, nullptr);
  std::vector<float> f(1);
  std::vector<int64_t> i(1);
  std::vector<uint16_t> h(1);
  LaunchOptions options;
  options.threads = 4;
  const absl::Status status =
      kernel->Launch({1000, 1, 1}, {ArgumentOf(f), ArgumentOf(i), ArgumentOf(h)}, options);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(f[0], 1000);
  EXPECT_EQ(i[0], 3000);
  EXPECT_EQ(h[0], 0x63D0);  // 1000
}

TEST(AtomicTest, KindsReturnTheOldValueAndChangeActiveElements) {
  const auto run = [](const std::string& kind) {
    const auto kernel = CompileText(
        KernelText("%x_ptr: !tt.ptr<i32>, %r_ptr: !tt.ptr<i32>",
                   LoadText("x", "i32", 4) +
                       "    %v = arith.constant dense<[-6, 6, 6, 6]> : tensor<4xi32>\n"
                       "    %m = arith.constant dense<[true, true, true, false]> : tensor<4xi1>\n"
                       "    %r = tt.atomic_rmw " +
                       kind +
                       ", acq_rel, gpu, %x_at, %v, %m : "
                       "(tensor<4x!tt.ptr<i32>>, tensor<4xi32>, tensor<4xi1>) -> tensor<4xi32>\n" +
                       StoreText("r", "i32", 4)));
    std::vector<int32_t> x = {5, 7, -1, 4};
    std::vector<int32_t> r(4);
    EXPECT_NE(kernel, nullptr);
    if (kernel == nullptr) return x;
    const absl::Status status =
        kernel->Launch({1, 1, 1}, {ArgumentOf(x), ArgumentOf(r)}, LaunchOptions());
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(r, (std::vector<int32_t>{5, 7, -1, 0}));
    return x;
  };
  EXPECT_EQ(run("max"), (std::vector<int32_t>{5, 7, 6, 4}));
  EXPECT_EQ(run("min"), (std::vector<int32_t>{-6, 6, -1, 4}));
  EXPECT_EQ(run("umax"), (std::vector<int32_t>{-6, 7, -1, 4}));
  EXPECT_EQ(run("and"), (std::vector<int32_t>{5 & -6, 6, 6, 4}));
  EXPECT_EQ(run("exch"), (std::vector<int32_t>{-6, 6, 6, 4}));
}

TEST(AtomicTest, CompareAndSwapOnlyWhereEqual) {
  const auto kernel = CompileText(KernelText(
      "%x_ptr: !tt.ptr<i32>, %r_ptr: !tt.ptr<i32>",
      LoadText("x", "i32", 4) +
          "    %e = arith.constant dense<2> : tensor<4xi32>\n"
          "    %d = arith.constant dense<9> : tensor<4xi32>\n"
          "    %r = tt.atomic_cas acq_rel, gpu, %x_at, %e, %d : (tensor<4x!tt.ptr<i32>>, "
          "tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>\n" +
          StoreText("r", "i32", 4)));
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x = {1, 2, 3, 2};
  std::vector<int32_t> r(4);
  ASSERT_TRUE(kernel->Launch({1, 1, 1}, {ArgumentOf(x), ArgumentOf(r)}, LaunchOptions()).ok());
  EXPECT_EQ(x, (std::vector<int32_t>{1, 9, 3, 9}));
  EXPECT_EQ(r, (std::vector<int32_t>{1, 2, 3, 2}));
}

TEST(ReportTest, AFailedAssertionEndsTheLaunch) {
  const auto kernel = CompileText(
      KernelText("%x_ptr: !tt.ptr<i32>",
                 LoadText("x", "i32", 4) +
                     "    %l = arith.constant dense<3> : tensor<4xi32>\n"
                     "    %c = arith.cmpi slt, %x, %l : tensor<4xi32>\n"
                     "    tt.assert %c, \"too large\" : tensor<4xi1> loc(\"kernel.py\":4:1)\n"));
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x = {0, 1, 3, 2};
  const absl::Status status = kernel->Launch({1, 1, 1}, {ArgumentOf(x)}, LaunchOptions());
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(),
            "assertion of kernel k failed: too large, element 2, program (0, 0, 0), line 4 of "
            "kernel.py");
}

TEST(ReportTest, PrintsElementsWithTheirPlaces) {
  const auto kernel = CompileText(KernelText(
      "%x_ptr: !tt.ptr<i32>, %f: f32",
      LoadText("x", "i32", 4) +
          "    tt.print \" x: \" {hex = false, isSigned = array<i32: 1>} : %x : tensor<4xi32>\n"
          "    tt.print \" f: \" {hex = false, isSigned = array<i32: 0>} : %f : f32\n"));
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x = {5, -6, 7, 8};
  LaunchOptions options;
  options.max_printed_elements = 2;
  std::string printed;
  options.print = [&](absl::string_view text) { absl::StrAppend(&printed, text); };
  const absl::Status status =
      kernel->Launch({1, 1, 1}, {ArgumentOf(x), KernelArgument::Float(0.5)}, options);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(printed,
            "pid (0, 0, 0) idx (0) x: 5\npid (0, 0, 0) idx (1) x: -6\npid (0, 0, 0) ... 2 more\n"
            "pid (0, 0, 0) idx () f: 0.500000\n");
}

TEST(LaunchTest, ArgumentsMustFitTheFunction) {
  const auto kernel = CompileText(MaskedCopy());
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x(16);
  EXPECT_EQ(kernel->Launch({1, 1, 1}, {ArgumentOf(x)}, LaunchOptions()).message(),
            "kernel k has 3 arguments and got 1");
  EXPECT_EQ(
      kernel->Launch({1, 1, 1}, {ArgumentOf(x), ArgumentOf(x), ArgumentOf(x)}, LaunchOptions())
          .message(),
      "argument n of kernel k is i32, and the launch gives a tensor");
  EXPECT_TRUE(absl::StrContains(kernel->Launch({0, 1, 1}, {}, LaunchOptions()).message(),
                                "is empty or too large"));
}

}  // namespace
}  // namespace tritonrl::ttir
