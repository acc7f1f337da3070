// What breaks a rule is refused, with the operation's name and its line of the kernel's file.
#include "exec/ttir/verify.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "exec/ttir/parser.h"
#include "exec/ttir/testing/corpus.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

constexpr char kValues[] = R"(
  %r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %l = arith.extsi %n : i32 to i64
  %x = tt.load %ps : tensor<16x!tt.ptr<f32>>
  %a = tt.expand_dims %x {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
  %m = tt.broadcast %a : tensor<16x1xf32> -> tensor<16x16xf32>
  %h = arith.truncf %m : tensor<16x16xf32> to tensor<16x16xf16>
)";

std::string ErrorOf(const std::string& body) {
  const auto module = ParseTtir(ModuleAround(absl::StrCat(kValues, body, "\ntt.return")));
  return module.ok() ? "" : std::string(module.status().message());
}

struct Case {
  const char* text;     // one operation; its location is line 12 of kernel.py
  const char* message;  // a part of it
};

TEST(VerifyTest, RightOperationsPass) {
  EXPECT_EQ(ErrorOf("%y = tt.dot %m, %m, %m : tensor<16x16xf32> * tensor<16x16xf32> -> "
                    "tensor<16x16xf32>"),
            "");
}

class RuleTest : public testing::TestWithParam<Case> {};

TEST_P(RuleTest, IsRefusedWithNameAndLine) {
  const std::string text = GetParam().text;
  const std::string message = ErrorOf(absl::StrCat(text, " loc(#loc1)"));
  EXPECT_TRUE(absl::StrContains(message, GetParam().message)) << message << "\n" << text;
  EXPECT_TRUE(absl::StrContains(message, ", line 12 of kernel.py: ")) << message << "\n" << text;
  EXPECT_TRUE(absl::StrContains(message, "(TTIR text line 13)")) << message << "\n" << text;
}

INSTANTIATE_TEST_SUITE_P(
    Elementwise, RuleTest,
    testing::Values(
        Case{"%y = arith.addi %x, %x : tensor<16xf32>", "it takes integers and not tensor<16xf32>"},
        Case{"%y = arith.addf %n, %n : i32", "it takes floats and not i32"},
        Case{"%y = \"arith.addf\"(%x, %f) : (tensor<16xf32>, f32) -> tensor<16xf32>", "operands"},
        Case{"%y = \"arith.addi\"(%n) : (i32) -> i32", "it has 1 operands"},
        Case{"%y = \"arith.cmpi\"(%n, %n) <{predicate = 2 : i64}> : (i32, i32) -> i32", "i1"},
        Case{"%y = \"arith.select\"(%n, %n, %n) : (i32, i32, i32) -> i32", "its condition"},
        Case{"%y = arith.extsi %n : i32 to i16", "it cannot make i16 of i32"},
        Case{"%y = arith.trunci %n : i32 to i64", "it cannot make i64 of i32"},
        Case{"%y = arith.extf %x : tensor<16xf32> to tensor<8xf64>", "it cannot make"},
        Case{"%y = arith.sitofp %f : f32 to f32", "it cannot make"},
        Case{"%y = arith.bitcast %n : i32 to i64", "it cannot make i64 of i32"},
        Case{"%y = tt.bitcast %p : !tt.ptr<f32> -> i64", "it cannot make"},
        Case{"%y = tt.int_to_ptr %n : i32 -> !tt.ptr<f32>", "it cannot make"},
        Case{"%y = math.exp %n : i32", "it takes floats"}));

INSTANTIATE_TEST_SUITE_P(
    Shapes, RuleTest,
    testing::Values(
        Case{"%y = tt.splat %f : f32 -> tensor<4xi32>", "it cannot make"},
        Case{"%y = tt.broadcast %x : tensor<16xf32> -> tensor<32xf32>", "it cannot make"},
        Case{"%y = tt.reshape %x : tensor<16xf32> -> tensor<4x8xf32>", "it cannot make"},
        Case{"%y = tt.expand_dims %x {axis = 2 : i32} : tensor<16xf32> -> tensor<16x1xf32>",
             "it cannot make"},
        Case{"%y = tt.expand_dims %x {axis = -1 : i32} : tensor<16xf32> -> tensor<16x1xf32>",
             "it cannot make"},
        Case{"%y = tt.trans %a {order = array<i32: 0, 0>} : tensor<16x1xf32> -> tensor<16x16xf32>",
             "no permutation"},
        Case{"%y = tt.trans %a {order = array<i32: 1, 0>} : tensor<16x1xf32> -> tensor<16x1xf32>",
             "permuted shape"},
        Case{"%y = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<16xi32>", "range"},
        Case{"%y = tt.join %x, %x : tensor<16xf32> -> tensor<2x16xf32>", "it cannot make"},
        Case{"%y, %z = tt.split %m : tensor<16x16xf32> -> tensor<16xf32>", "it cannot make"},
        Case{"%y = tt.cat %x, %x : tensor<16xf32> -> tensor<64xf32>", "it cannot make"},
        Case{"%y = tt.gather %m[%r] {axis = 0 : i32} : (tensor<16x16xf32>, tensor<16xi32>) -> "
             "tensor<16xf32>",
             "do not fit"},
        Case{"%y = tt.dot %m, %h, %m : tensor<16x16xf32> * tensor<16x16xf16> -> tensor<16x16xf32>",
             "it does not multiply"},
        Case{"%y = tt.dot %m, %a, %m : tensor<16x16xf32> * tensor<16x1xf32> -> tensor<16x16xf32>",
             "the shapes of"},
        Case{"%y = tt.dot %x, %x, %x : tensor<16xf32> * tensor<16xf32> -> tensor<16xf32>",
             "not matrices"}));

INSTANTIATE_TEST_SUITE_P(
    Memory, RuleTest,
    testing::Values(
        Case{"%y = tt.addptr %p, %f : !tt.ptr<f32>, f32", "it cannot add f32"},
        Case{"%y = tt.addptr %ps, %n : tensor<16x!tt.ptr<f32>>, i32", "it cannot add i32"},
        Case{"%y = tt.load %n : i32", "it cannot load from i32"},
        Case{"%y = tt.load %ps, %c : tensor<16x!tt.ptr<f32>>", "its mask is i1"},
        Case{"%y = tt.load %p, %c, %n : !tt.ptr<f32>", "its default is i32"},
        Case{"tt.store %p, %n : !tt.ptr<f32>", "it stores i32 to !tt.ptr<f32>"},
        Case{"tt.store %ps, %f : tensor<16x!tt.ptr<f32>>", "it stores f32"},
        Case{"%y = tt.load %p {boundaryCheck = array<i32: 0>} : !tt.ptr<f32>", "boundary"},
        Case{"%y = tt.atomic_rmw fadd, acq_rel, gpu, %q, %n : (!tt.ptr<i32>, i32) -> i32", "kind"},
        Case{"%y = tt.atomic_rmw add, acq_rel, gpu, %p, %f : (!tt.ptr<f32>, f32) -> f32", "kind"},
        Case{"%y = tt.atomic_cas acq_rel, gpu, %q, %f, %f : (!tt.ptr<i32>, f32, f32) -> f32",
             "its value"},
        Case{"%y = tt.make_tensor_ptr %p, [%l], [%l], [%n] {order = array<i32: 1>} : "
             "<tensor<16xf32>>",
             "its order"},
        Case{"%y = tt.make_tensor_ptr %p, [%l], [%l], [] {order = array<i32: 0>} : "
             "<tensor<16xf32>>",
             "not as many numbers as axes"},
        Case{"%y = tt.make_tensor_ptr %q, [%l], [%l], [%n] {order = array<i32: 0>} : "
             "<tensor<16xf32>>",
             "its base is"},
        Case{"%y = tt.make_tensor_descriptor %p, [%l], [%l] : <f32>, <tensor<16xf32>>",
             "its operand 1 is i64"}));

INSTANTIATE_TEST_SUITE_P(
    Control, RuleTest,
    testing::Values(
        Case{"tt.assert %n, \"x\" : i32", "its condition is not i1"},
        Case{"%y = \"tt.reduce\"(%x) <{axis = 1 : i32}> ({\n^bb0(%i: f32, %j: f32):\n"
             "tt.reduce.return %i : f32\n}) : (tensor<16xf32>) -> f32",
             "it has no axis 1"},
        Case{"%y = \"tt.reduce\"(%x) <{axis = 0 : i32}> ({\n^bb0(%i: f32, %j: i32):\n"
             "tt.reduce.return %i : f32\n}) : (tensor<16xf32>) -> f32",
             "its region's argument 1 is i32"},
        Case{"%y = \"tt.reduce\"(%x) <{axis = 0 : i32}> ({\n^bb0(%i: f32, %j: f32):\n"
             "tt.scan.return %i : f32\n}) : (tensor<16xf32>) -> f32",
             "does not end with tt.reduce.return"},
        Case{"%y = \"tt.scan\"(%x) <{axis = 0 : i32, reverse = false}> ({\n"
             "^bb0(%i: f32, %j: f32):\ntt.scan.return %n : i32\n}) : (tensor<16xf32>) -> "
             "tensor<16xf32>",
             "hands over i32"},
        Case{"%y = scf.if %c -> (i32) {\nscf.yield %f : f32\n} else {\nscf.yield %n : i32\n}",
             "hands over f32 and not i32"},
        Case{"%y = scf.if %c -> (i32) {\nscf.yield %n : i32\n}", "no else"},
        Case{"%y = scf.for %i = %n to %n step %n iter_args(%j = %f) -> (f32) : i32 {\n"
             "scf.yield %i : i32\n}",
             "hands over i32 and not f32"},
        Case{"scf.for %i = %f to %f step %f : f32 {\n}", "not integers"}));

TEST(VerifyTest, OperandsMustDominate) {
  const auto module = ParseTtir(ModuleAround(R"(
    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:
    %x = arith.addi %n, %n : i32
    cf.br ^bb2
  ^bb2:
    %y = arith.addi %x, %n : i32 loc(#loc1)
    tt.return)"));
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.status().message(),
            "arith.addi, line 12 of kernel.py: the definition of %x does not dominate this use "
            "(TTIR text line 11)");
}

TEST(VerifyTest, ADefinitionInADominatingBlockIsSeen) {
  const auto module = ParseTtir(ModuleAround(R"(
    %x = arith.addi %n, %n : i32
    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:
    %z = arith.addi %x, %n : i32
    cf.br ^bb3(%z : i32)
  ^bb2:
    cf.br ^bb3(%n : i32)
  ^bb3(%w: i32):
    %y = arith.addi %x, %w : i32
    cf.cond_br %c, ^bb1, ^bb4
  ^bb4:
    tt.return)"));
  EXPECT_TRUE(module.ok()) << module.status();
}

TEST(VerifyTest, BlocksEndWithTheirTerminator) {
  EXPECT_FALSE(ParseTtir(ModuleAround("gpu.barrier")).ok());
  EXPECT_FALSE(ParseTtir(ModuleAround("scf.yield")).ok());
  EXPECT_FALSE(ParseTtir(ModuleAround("")).ok());
  EXPECT_FALSE(ParseTtir(ModuleAround("tt.return\n tt.return")).ok());
  EXPECT_FALSE(ParseTtir(ModuleAround("scf.if %c {\n tt.return\n }\n tt.return")).ok());
  EXPECT_FALSE(ParseTtir(ModuleAround("tt.return %n : i32")).ok());
  EXPECT_FALSE(ParseTtir(ModuleAround("cf.br ^bb1(%n : i32)\n^bb1:\n tt.return")).ok());
  EXPECT_FALSE(ParseTtir(ModuleAround("cf.br ^bb1\n^bb1(%i: i32):\n tt.return")).ok());
}

std::string Functions(const std::string& call) {
  return absl::StrCat(
      "#loc1 = loc(\"kernel.py\":12:8)\nmodule {\n"
      "tt.func public @k(%n: i32) {\n%x = tt.call @f(%n) : (i32) -> i32\ntt.return\n}\n"
      "tt.func private @f(%n: i32) -> i32 attributes {noinline = true} {\n",
      call, "\ntt.return %n : i32\n}\n}\n");
}

TEST(VerifyTest, CallsMustFit) {
  EXPECT_TRUE(ParseTtir(Functions("")).ok());
  const auto message = [](const std::string& call) {
    return std::string(ParseTtir(Functions(call)).status().message());
  };
  EXPECT_EQ(message("tt.call @g() : () -> () loc(#loc1)"),
            "tt.call, line 12 of kernel.py: the function @g does not exist");
  EXPECT_EQ(message("tt.call @f(%n) : (i32) -> () loc(#loc1)"),
            "tt.call, line 12 of kernel.py: the types do not fit @f (TTIR text line 8)");
  EXPECT_EQ(message("%y = tt.call @f(%n) : (i32) -> i32 loc(#loc1)"),
            "tt.call, line 12 of kernel.py: @f calls itself, directly or through others (TTIR "
            "text line 8)");
}

}  // namespace
}  // namespace tritonrl::ttir
