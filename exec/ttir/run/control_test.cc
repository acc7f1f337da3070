// Loops, branches, calls, and their limits.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "exec/ttir/run/testing/kernel_text.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

// Runs a body that stores to %x_ptr and reads %n.
std::vector<int32_t> RunText(const std::string& text, std::vector<int32_t> x, int64_t n) {
  const auto kernel = CompileText(text);
  if (kernel == nullptr) return {};
  const absl::Status status =
      kernel->Launch({1, 1, 1}, {ArgumentOf(x), KernelArgument::Integer(n)}, LaunchOptions());
  EXPECT_TRUE(status.ok()) << status;
  return x;
}

constexpr char kArguments[] = "%x_ptr: !tt.ptr<i32>, %n: i32";
constexpr char kConstants[] =
    "    %c0 = arith.constant 0 : i32\n    %c1 = arith.constant 1 : i32\n"
    "    %c2 = arith.constant 2 : i32\n";

TEST(ForTest, CarriedValuesThatChangePlaces) {
  // Fibonacci numbers: each iteration hands over (b, a + b).
  const std::string text = KernelText(
      kArguments, std::string(kConstants) +
                      "    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0, %b = %c1) -> "
                      "(i32, i32)  : i32 {\n"
                      "      %s = arith.addi %a, %b : i32\n"
                      "      scf.yield %b, %s : i32, i32\n    }\n"
                      "    tt.store %x_ptr, %r#0 : !tt.ptr<i32>\n");
  EXPECT_EQ(RunText(text, {0}, 10)[0], 55);
  EXPECT_EQ(RunText(text, {7}, 0)[0], 0);
}

TEST(ForTest, TensorsThatSwapAndAccumulate) {
  const std::string text = KernelText(
      kArguments,
      std::string(kConstants) + LoadText("x", "i32", 32) +
          "    %z = arith.constant dense<0> : tensor<32xi32>\n"
          "    %r:3 = scf.for %i = %c0 to %n step %c2 iter_args(%a = %x, %b = %z, %s = %z) -> "
          "(tensor<32xi32>, tensor<32xi32>, tensor<32xi32>)  : i32 {\n"
          "      %t = arith.addi %s, %a : tensor<32xi32>\n"
          "      %is = tt.splat %i : i32 -> tensor<32xi32>\n"
          "      %u = arith.addi %t, %is : tensor<32xi32>\n"
          "      scf.yield %b, %a, %u : tensor<32xi32>, tensor<32xi32>, tensor<32xi32>\n    }\n"
          "    %v = arith.addi %r#0, %r#2 : tensor<32xi32>\n"
          "    tt.store %x_at, %v : tensor<32x!tt.ptr<i32>>\n");
  std::vector<int32_t> x(32);
  for (int i = 0; i < 32; ++i) x[i] = 10 * i;
  const auto result = RunText(text, x, 5);  // i = 0, 2, 4: a is x, 0, x, then 0
  for (int i = 0; i < 32; ++i) EXPECT_EQ(result[i], 2 * x[i] + 6);
}

TEST(WhileTest, CollatzWithABranch) {
  const std::string text = KernelText(
      kArguments, std::string(kConstants) +
                      "    %c3 = arith.constant 3 : i32\n"
                      "    %r:2 = scf.while (%a = %n, %k = %c0) : (i32, i32) -> (i32, i32) {\n"
                      "      %c = arith.cmpi sgt, %a, %c1 : i32\n"
                      "      scf.condition(%c) %a, %k : i32, i32\n"
                      "    } do {\n"
                      "    ^bb0(%a: i32, %k: i32):\n"
                      "      %m = arith.remsi %a, %c2 : i32\n"
                      "      %e = arith.cmpi eq, %m, %c0 : i32\n"
                      "      %b = scf.if %e -> (i32) {\n"
                      "        %h = arith.divsi %a, %c2 : i32\n"
                      "        scf.yield %h : i32\n"
                      "      } else {\n"
                      "        %t = arith.muli %a, %c3 : i32\n"
                      "        %u = arith.addi %t, %c1 : i32\n"
                      "        scf.yield %u : i32\n"
                      "      }\n"
                      "      %j = arith.addi %k, %c1 : i32\n"
                      "      scf.yield %b, %j : i32, i32\n"
                      "    }\n"
                      "    tt.store %x_ptr, %r#1 : !tt.ptr<i32>\n");
  EXPECT_EQ(RunText(text, {0}, 27)[0], 111);
  EXPECT_EQ(RunText(text, {5}, 1)[0], 0);
}

TEST(GraphTest, BranchesJoinInABlockWithArguments) {
  const std::string text = KernelText(kArguments, std::string(kConstants) +
                                                      "    %c = arith.cmpi sgt, %n, %c2 : i32\n"
                                                      "    cf.cond_br %c, ^bb1, ^bb2(%c1 : i32)\n"
                                                      "  ^bb1:\n"
                                                      "    %d = arith.muli %n, %c2 : i32\n"
                                                      "    cf.br ^bb2(%d : i32)\n"
                                                      "  ^bb2(%v: i32):\n"
                                                      "    tt.store %x_ptr, %v : !tt.ptr<i32>\n");
  EXPECT_EQ(RunText(text, {0}, 5)[0], 10);
  EXPECT_EQ(RunText(text, {0}, 2)[0], 1);
}

TEST(GraphTest, ALoopOfBlocksKeepsItsValues) {
  // (a, b) = (b, a + b) n times, as a branch back with arguments that change places.
  const std::string text =
      KernelText(kArguments, std::string(kConstants) +
                                 "    cf.br ^bb1(%c0, %c1, %c0 : i32, i32, i32)\n"
                                 "  ^bb1(%a: i32, %b: i32, %i: i32):\n"
                                 "    %c = arith.cmpi slt, %i, %n : i32\n"
                                 "    cf.cond_br %c, ^bb2, ^bb3\n"
                                 "  ^bb2:\n"
                                 "    %s = arith.addi %a, %b : i32\n"
                                 "    %j = arith.addi %i, %c1 : i32\n"
                                 "    cf.br ^bb1(%b, %s, %j : i32, i32, i32)\n"
                                 "  ^bb3:\n"
                                 "    tt.store %x_ptr, %a : !tt.ptr<i32>\n");
  EXPECT_EQ(RunText(text, {0}, 10)[0], 55);
}

TEST(LimitTest, AnEndlessLoopMeetsTheDeadlineOrTheLimit) {
  const auto kernel = CompileText(KernelText(
      kArguments,
      "    scf.while : () -> () {\n"
      "      %v = tt.load %x_ptr : !tt.ptr<i32>\n"
      "      %c = arith.cmpi eq, %v, %n : i32\n"
      "      scf.condition(%c)\n    } do {\n      scf.yield\n    } loc(\"kernel.py\":9:0)\n"));
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x = {1};
  LaunchOptions options;
  options.max_steps = 10'000;
  const absl::Status limit =
      kernel->Launch({1, 1, 1}, {ArgumentOf(x), KernelArgument::Integer(1)}, options);
  EXPECT_EQ(
      limit.message(),
      "kernel k: a program reached the limit of 10000 operations, program (0, 0, 0), line 9 of "
      "kernel.py");
  options = LaunchOptions();
  int questions = 0;
  options.expired = [&] { return ++questions > 3; };
  const absl::Status deadline =
      kernel->Launch({1, 1, 1}, {ArgumentOf(x), KernelArgument::Integer(1)}, options);
  EXPECT_EQ(deadline.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(absl::StrContains(deadline.message(), "the time limit passed in a loop"));
}

TEST(LimitTest, ALoopsStepMustBePositive) {
  const auto kernel = CompileText(
      KernelText(kArguments,
                 "    %c0 = arith.constant 0 : i32\n"
                 "    scf.for %i = %c0 to %n step %c0  : i32 {\n      scf.yield\n    }\n"));
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x = {1};
  EXPECT_TRUE(absl::StrContains(
      kernel->Launch({1, 1, 1}, {ArgumentOf(x), KernelArgument::Integer(1)}, LaunchOptions())
          .message(),
      "the step is 0 and not positive"));
}

TEST(LimitTest, BuffersMustFitTheLimit) {
  const auto kernel = CompileText(KernelText(
      "%x_ptr: !tt.ptr<i32>",
      LoadText("x", "i32", 4096) + "    tt.store %x_at, %x : tensor<4096x!tt.ptr<i32>>\n"));
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> x(4096);
  LaunchOptions options;
  options.max_buffer_bytes = 1000;
  EXPECT_EQ(kernel->Launch({1, 1, 1}, {ArgumentOf(x)}, options).code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(CompileTest, MissingOperationsAreNamedWithTheirLine) {
  const std::string text = KernelText(
      "%x_ptr: !tt.ptr<i32>",
      LoadText("x", "i32", 32) +
          "    %r = tt.elementwise_inline_asm \"mov.u32 $0, %smid;\" {constraints = \"=r,r\", "
          "packed_element = 1 : i32, pure = true} %x : tensor<32xi32> -> tensor<32xi32> "
          "loc(\"kernel.py\":5:2)\n");
  EXPECT_EQ(
      CompileError(text).message(),
      "not executable: tt.elementwise_inline_asm, line 5 of kernel.py: instruction mov.u32 $0, "
      "%smid (%smid)");
}

}  // namespace
}  // namespace tritonrl::ttir
