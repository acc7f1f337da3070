// tt.elementwise_inline_asm: how elements meet registers. What instructions do: ptx/program_test.cc
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "exec/ttir/run/testing/kernel_text.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

std::string Assembly(const std::string& text, const std::string& constraints, int packed,
                     const std::string& operands, const std::string& types) {
  return absl::Substitute(
      "    %r = tt.elementwise_inline_asm \"$0\" {constraints = \"$1\", packed_element = $2 : i32, "
      "pure = true} $3 : $4\n",
      text, constraints, packed, operands, types);
}

TEST(AssemblyTest, ElementsOfAllSizes) {
  std::vector<float> x(32);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 8;
  const auto floats =
      RunBody<float>(Assembly("add.rn.f32 $0, $1, $2;", "=f,f,f", 1, "%x, %y", "$T, $T -> $R"),
                     "f32", "f32", x, x);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(floats[i], 2 * x[i]);
  // 1 and 2 as bf16, in a register of their own and as a pair.
  std::vector<uint16_t> brains(32, 0x3F80);
  brains[5] = 0x4000;
  for (const int packed : {1, 2, 4}) {
    const std::string text = packed == 1   ? "mul.bf16 $0, $1, $2;"
                             : packed == 2 ? "mul.bf16x2 $0, $1, $2;"
                                           : "mul.bf16x2 $0, $2, $4; mul.bf16x2 $1, $3, $5;";
    const std::string constraints = packed == 1   ? "=h,h,h"
                                    : packed == 2 ? "=r,r,r"
                                                  : "=r,=r,r,r,r,r";
    const auto result =
        RunBody<uint16_t>(Assembly(text, constraints, packed, "%x, %y", "$T, $T -> $R"), "bf16",
                          "bf16", brains, brains);
    for (size_t i = 0; i < 32; ++i) EXPECT_EQ(result[i], i == 5 ? 0x4080 : 0x3F80) << packed;
  }
  std::vector<uint8_t> bytes(32);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(17 * i);
  const auto reversed =
      RunBody<uint8_t>(Assembly("prmt.b32 $0, $1, 0, 0x0123;", "=r,r", 4, "%x", "$T -> $R"), "i8",
                       "i8", bytes, bytes);
  for (size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(reversed[i], bytes[i / 4 * 4 + 3 - i % 4]);
  // An e4m3 is made of a float, in the low byte of a result of 16 bits.
  const auto small = RunBody<uint16_t>(
      Assembly("cvt.rn.satfinite.e4m3x2.f32 $0, 0.0, $1;", "=h,f", 1, "%x", "$T -> $R"), "f32",
      "i16", x, x);
  EXPECT_EQ(small[8], 0x38);
}

TEST(AssemblyTest, SeveralResultsOfDifferentTypes) {
  const std::string text =
      "{ .reg .b8 t<4>; mov.b32 {t0, t1, t2, t3}, $8; cvt.u32.u8 $0, t0; cvt.u32.u8 $1, t1; "
      "cvt.u32.u8 $2, t2; "
      "cvt.u32.u8 $3, t3; } cvt.rn.f32.s32 $4, $0; cvt.rn.f32.s32 $5, $1; cvt.rn.f32.s32 $6, "
      "$2; "
      "cvt.rn.f32.s32 $7, $3; max.f32 $4, $4, $9; max.f32 $5, $5, $10; max.f32 $6, $6, "
      "$11; "
      "max.f32 $7, $7, $12;";
  const auto kernel = CompileText(KernelText(
      "%x_ptr: !tt.ptr<i8>, %y_ptr: !tt.ptr<f32>, %i_ptr: !tt.ptr<i32>, %f_ptr: !tt.ptr<f32>",
      LoadText("x", "i8", 16) + LoadText("y", "f32", 16) +
          absl::Substitute(
              "    %s:2 = tt.elementwise_inline_asm \"$0\" {constraints = "
              "\"=r,=r,=r,=r,=r,=r,=r,=r,r,r,r,r,r\", "
              "packed_element = 4 : i32, pure = true} %x, %y : tensor<16xi8>, tensor<16xf32> -> "
              "tensor<16xi32>, tensor<16xf32>\n",
              text) +
          "    %zero = arith.constant dense<0> : tensor<16xi32>\n    %i = arith.addi %s#0, %zero : "
          "tensor<16xi32>\n"
          "    %f = arith.addf %s#1, %s#1 : tensor<16xf32>\n" +
          StoreText("i", "i32", 16) + StoreText("f", "f32", 16)));
  ASSERT_NE(kernel, nullptr);
  std::vector<uint8_t> x(16);
  std::vector<float> y(16);
  for (size_t i = 0; i < 16; ++i) {
    x[i] = static_cast<uint8_t>(37 * i);
    y[i] = static_cast<float>(100 * (i % 3));
  }
  std::vector<int32_t> whole(16);
  std::vector<float> most(16);
  ASSERT_TRUE(kernel
                  ->Launch({1, 1, 1},
                           {ArgumentOf(x), ArgumentOf(y), ArgumentOf(whole), ArgumentOf(most)},
                           LaunchOptions())
                  .ok());
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(whole[i], x[i]);
    EXPECT_EQ(most[i], 2 * std::max<float>(x[i], y[i]));
  }
}

TEST(AssemblyTest, ScalarsAndUniformTensors) {
  const auto kernel = CompileText(KernelText(
      "%n: i32, %r_ptr: !tt.ptr<i32>",
      "    %c = arith.constant dense<3> : tensor<8xi32>\n" +
          Assembly("add.s32 $0, $1, 4;", "=r,r", 1, "%c", "tensor<8xi32> -> tensor<8xi32>") +
          "    %m = tt.elementwise_inline_asm \"mul.lo.s32 $0, $1, $1;\" {constraints = \"=r,r\", "
          "packed_element = 1 "
          ": i32, pure = true} %n : i32 -> i32\n"
          "    %w = tt.elementwise_inline_asm \"griddepcontrol.wait; // dummy $0\" {constraints = "
          "\"=r\", "
          "packed_element = 1 : i32, pure = false} -> i32\n    tt.store %r_ptr, %m : !tt.ptr<i32>\n"
          "    %at = tt.make_range {start = 1 : i32, end = 9 : i32} : tensor<8xi32>\n"
          "    %p = tt.splat %r_ptr : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>\n"
          "    %q = tt.addptr %p, %at : tensor<8x!tt.ptr<i32>>, tensor<8xi32>\n"
          "    tt.store %q, %r : tensor<8x!tt.ptr<i32>>\n"));
  ASSERT_NE(kernel, nullptr);
  std::vector<int32_t> r(9);
  ASSERT_TRUE(
      kernel->Launch({1, 1, 1}, {KernelArgument::Integer(-5), ArgumentOf(r)}, LaunchOptions())
          .ok());
  EXPECT_EQ(r, (std::vector<int32_t>{25, 7, 7, 7, 7, 7, 7, 7, 7}));
}

TEST(AssemblyTest, MarksGoThroughGroups) {
  const auto kernel = CompileText(KernelText(
      "%x_ptr: !tt.ptr<i8>, %r_ptr: !tt.ptr<i8>",
      LoadText("x", "i8", 16) +
          Assembly("mov.b32 $0, $1;", "=r,r", 4, "%x", "tensor<16xi8> -> tensor<16xi8>") +
          StoreText("r", "i8", 16)));
  ASSERT_NE(kernel, nullptr);
  std::vector<uint8_t> x(16);
  std::vector<uint8_t> shadow(16, 1);
  std::vector<uint8_t> r(16);
  KernelArgument argument = ArgumentOf(x);
  argument.shadow = shadow.data();
  EXPECT_TRUE(Check(*kernel, {argument, ArgumentOf(r)}).list.empty());
  shadow[6] = 0;
  const LaunchFindings findings = Check(*kernel, {argument, ArgumentOf(r)});
  ASSERT_EQ(findings.list.size(), 1u);
  EXPECT_EQ(findings.list[0].kind, Finding::Kind::kUnwrittenRead);
}

TEST(AssemblyTest, WhatHasNoRegisterIsRefused) {
  const auto error = [](const std::string& body) {
    return std::string(
        CompileError(KernelText("%x_ptr: !tt.ptr<i8>", LoadText("x", "i8", 16) + body)).message());
  };
  EXPECT_TRUE(absl::StrContains(error(Assembly("mov.b64 $0, $1;", "=l,l", 1, "%x_at",
                                               "tensor<16x!tt.ptr<i8>> -> tensor<16xi64>")),
                                ": types"));
  EXPECT_TRUE(absl::StrContains(
      error(Assembly("mov.b32 $0, $1;", "=r,r", 1, "%x", "tensor<16xi8> -> tensor<16xi8>")),
      "constraint r of 8 bits"));
  EXPECT_TRUE(absl::StrContains(
      error(Assembly("mov.b32 $0, $1;", "=r,r,r", 4, "%x", "tensor<16xi8> -> tensor<16xi8>")),
      "constraints =r,r,r"));
  EXPECT_TRUE(absl::StrContains(
      error(Assembly("mov.b32 $0, $1;", "=r,r", 6, "%x", "tensor<16xi8> -> tensor<16xi8>")),
      ": types"));
}

}  // namespace
}  // namespace tritonrl::ttir
