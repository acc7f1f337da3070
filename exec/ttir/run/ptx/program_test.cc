#include "exec/ttir/run/ptx/program.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir::ptx {
namespace {

int BitsOf(char constraint) {
  return constraint == 'h' ? 16 : constraint == 'l' || constraint == 'd' ? 64 : 32;
}

absl::StatusOr<Program> ParseText(absl::string_view text, absl::string_view constraints) {
  std::vector<int> bits;
  int results = 0;
  for (size_t i = 0; i < constraints.size(); ++i) {
    if (constraints[i] == '=') ++results;
    if (absl::ascii_isalpha(static_cast<unsigned char>(constraints[i])))
      bits.push_back(BitsOf(constraints[i]));
  }
  return Program::Parse(text, constraints, bits, results);
}

// The results' registers.
std::vector<uint64_t> RunText(absl::string_view text, absl::string_view constraints,
                              const std::vector<uint64_t>& operands) {
  const absl::StatusOr<Program> program = ParseText(text, constraints);
  EXPECT_TRUE(program.ok()) << text << ": " << program.status();
  if (!program.ok()) return {0, 0, 0, 0};
  std::vector<uint64_t> registers = program->registers();
  const auto results = static_cast<size_t>(std::count(constraints.begin(), constraints.end(), '='));
  for (size_t i = 0; i < operands.size(); ++i) registers[1 + results + i] = operands[i];
  program->Run(registers.data());
  return {registers.begin() + 1, registers.begin() + 1 + static_cast<std::ptrdiff_t>(results)};
}

uint64_t Bits(float x) { return std::bit_cast<uint32_t>(x); }
float FloatOf(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }

std::string Refusal(absl::string_view text, absl::string_view constraints) {
  const absl::StatusOr<Program> program = ParseText(text, constraints);
  return program.ok() ? "" : std::string(program.status().message());
}

// What kernels use for single numbers, on many of them.
TEST(ProgramTest, FunctionsOfOneFloat) {
  struct Case {
    absl::string_view text;
    std::function<double(double)> function;
  };
  const Case cases[] = {
      {"ex2.approx.ftz.f32 $0, $1;", [](double x) { return std::exp2(x); }},
      {"ex2.approx.f32 $0, $1;", [](double x) { return std::exp2(x); }},
      {"\n            tanh.approx.f32 $0, $1;\n        ", [](double x) { return std::tanh(x); }},
      {"lg2.approx.f32 $0, $1;", [](double x) { return std::log2(x); }},
      {"rcp.approx.ftz.f32 $0, $1;", [](double x) { return 1 / x; }},
      {"rcp.rn.f32 $0, $1;", [](double x) { return 1 / x; }},
      {"rsqrt.approx.ftz.f32 $0, $1;", [](double x) { return 1 / std::sqrt(x); }},
      {"sqrt.approx.f32 $0, $1;", [](double x) { return std::sqrt(x); }},
      {"{ .reg .f32 t; sin.approx.f32 t, $1; fma.rn.f32 $0, t, t, -1.5; }",
       [](double x) {
         return static_cast<double>(static_cast<float>(std::sin(x))) *
                    static_cast<float>(std::sin(x)) -
                1.5;
       }},
      {"cvt.rni.f32.f32 $0, $1;", [](double x) { return std::nearbyint(x); }},
      {"max.f32 $0, $1, 0f00000000;", [](double x) { return std::max(x, 0.0); }},
      {"{.reg .pred big; setp.gt.f32 big, $1, 0f3F000000; mov.f32 $0, $1; @big mul.f32 $0, $0, "
       "2.0; @!big add.f32 $0, $0, 1.0;}",
       [](double x) { return x > 0.5 ? x * 2 : x + 1; }},
      {"neg.f32 $0, $1; abs.f32 $0, $0;", [](double x) { return std::fabs(x); }},
  };
  std::mt19937 random(1);
  std::uniform_real_distribution<float> numbers(0.1f, 9);
  for (const Case& c : cases) {
    for (int i = 0; i < 50; ++i) {
      const float x = numbers(random);
      EXPECT_EQ(FloatOf(RunText(c.text, "=f,f", {Bits(x)})[0]), static_cast<float>(c.function(x)))
          << c.text << x;
    }
  }
}

TEST(ProgramTest, RoundedArithmeticOfTwoFloats) {
  std::mt19937 random(2);
  std::normal_distribution<float> numbers;
  for (int i = 0; i < 200; ++i) {
    const float x = numbers(random);
    const float y = numbers(random) * 1e-3f;
    const std::vector<uint64_t> in = {Bits(x), Bits(y)};
    EXPECT_EQ(RunText("add.rn.f32 $0, $1, $2;", "=f,f,f", in)[0], Bits(x + y));
    EXPECT_EQ(RunText("sub.rn.f32 $0, $1, $2;", "=f,f,f", in)[0], Bits(x - y));
    EXPECT_EQ(RunText("mul.rn.f32 $0, $1, $2;", "=r, r, r", in)[0], Bits(x * y));
    EXPECT_EQ(RunText("div.rn.f32 $0, $1, $2;", "=r,r,r", in)[0], Bits(x / y));
    EXPECT_EQ(RunText("div.full.f32 $0, $1, $2;", "=r,r,r", in)[0], Bits(x / y));
    // The product and its error.
    const auto both = RunText("mul.rn.f32 $0, $2, $3; neg.f32 $1, $0; fma.rn.f32 $1, $2, $3, $1;",
                              "=r,=r,r,r", in);
    EXPECT_EQ(static_cast<double>(FloatOf(both[0])) + FloatOf(both[1]), static_cast<double>(x) * y);
  }
  EXPECT_EQ(RunText("mul.ftz.f32 $0, $1, $2;", "=f,f,f", {Bits(1e-20f), Bits(1e-20f)})[0], 0u);
  EXPECT_EQ(RunText("add.f32 $0, $1, $2;", "=f,f,f", {Bits(INFINITY), Bits(-INFINITY)})[0],
            0x7FFFFFFFu);
  EXPECT_EQ(RunText("max.f32 $0, $1, $2;", "=f,f,f", {Bits(NAN), Bits(-3)})[0], Bits(-3));
  EXPECT_EQ(RunText("max.NaN.f32 $0, $1, $2;", "=f,f,f", {Bits(NAN), Bits(-3)})[0], 0x7FFFFFFFu);
  EXPECT_EQ(RunText("min.f32 $0, $1, $2;", "=f,f,f", {Bits(0), Bits(-0.0f)})[0], Bits(-0.0f));
}

TEST(ProgramTest, Integers) {
  struct Case {
    absl::string_view text;
    std::function<uint32_t(uint32_t)> function;
  };
  const auto byte = [](uint32_t x, int i) { return x >> (8 * i) & 0xFF; };
  const Case cases[] = {
      {"bfe.u32 $0, $1, 4, 8;", [](uint32_t x) { return x >> 4 & 255; }},
      {"bfe.s32 $0, $1, 12, 4;",
       [](uint32_t x) { return static_cast<uint32_t>(static_cast<int32_t>(x << 16) >> 28); }},
      {"bfi.b32 $0, $1, 0xFFFFFFFF, 8, 4;", [](uint32_t x) { return 0xFFFFF0FF | (x & 15) << 8; }},
      {"lop3.b32 $0, $1, 15, 3, 0xEA;", [](uint32_t x) { return (x & 15) | 3; }},
      {"lop3.b32 $0, $1, 0x00800080, 0x64006400, 0xBE;",
       [](uint32_t x) { return (x ^ 0x00800080) | 0x64006400; }},
      {"prmt.b32 $0, $1, 0, 0x4140;", [&](uint32_t x) { return byte(x, 0) | byte(x, 1) << 16; }},
      {"prmt.b32 $0, $1, 0, 0x0123;", [&](uint32_t x) { return __builtin_bswap32(x); }},
      {"prmt.b32 $0, $1, $1, 0xBA98;",
       [&](uint32_t x) {
         uint32_t signs = 0;
         for (int i = 0; i < 4; ++i) signs |= (byte(x, i) >= 128 ? 0xFFu : 0) << (8 * i);
         return signs;
       }},
      {"shf.l.wrap.b32 $0, $1, $1, 35;", [](uint32_t x) { return std::rotl(x, 3); }},
      {"shf.r.clamp.b32 $0, $1, 7, 40;", [](uint32_t) { return 7u; }},
      {"shr.s32 $0, $1, 5;",
       [](uint32_t x) { return static_cast<uint32_t>(static_cast<int32_t>(x) >> 5); }},
      {"shr.u32 $0, $1, 32;", [](uint32_t) { return 0u; }},
      {"shl.b32 $0, $1, 7;", [](uint32_t x) { return x << 7; }},
      {"mad.lo.s32 $0, $1, 3, -7;", [](uint32_t x) { return x * 3 - 7; }},
      {"mul.hi.u32 $0, $1, 0xD2511F53;",
       [](uint32_t x) { return static_cast<uint32_t>(uint64_t{x} * 0xD2511F53u >> 32); }},
      {"popc.b32 $0, $1;", [](uint32_t x) { return static_cast<uint32_t>(std::popcount(x)); }},
      {"clz.b32 $0, $1;", [](uint32_t x) { return static_cast<uint32_t>(std::countl_zero(x)); }},
      {"max.s32 $0, $1, -100;",
       [](uint32_t x) { return static_cast<uint32_t>(std::max(static_cast<int32_t>(x), -100)); }},
      {"min.u32 $0, $1, 0b1111;", [](uint32_t x) { return std::min(x, 15u); }},
      {"{ .reg .b16 lo, hi; mov.b32 {lo, hi}, $1; mov.b32 $0, {hi, lo}; }",
       [](uint32_t x) { return std::rotl(x, 16); }},
      {"{ .reg .u64 w; mul.wide.u32 w, $1, $1; shr.u64 w, w, 8; cvt.u32.u64 $0, w; }",
       [](uint32_t x) { return static_cast<uint32_t>(uint64_t{x} * x >> 8); }},
      {"{ .reg .pred %p0; setp.lt.u32 %p0, $1, 0x80000000; selp.b32 $0, 1, 2, %p0; } // sign",
       [](uint32_t x) { return x < 0x80000000u ? 1u : 2u; }},
      {"cvt.s32.s8 $0, $1;",
       [](uint32_t x) { return static_cast<uint32_t>(static_cast<int8_t>(x)); }},
      {"cvt.rn.f32.u32 $0, $1;",
       [](uint32_t x) { return static_cast<uint32_t>(Bits(static_cast<float>(x))); }},
      {"cvt.rzi.s32.f32 $0, $1;",
       [](uint32_t x) {
         const double value = FloatOf(x);
         return value != value ? 0
                               : static_cast<uint32_t>(static_cast<int32_t>(std::max(
                                     -2147483648.0, std::min(2147483647.0, std::trunc(value)))));
       }},
  };
  std::mt19937 random(3);
  for (const Case& c : cases) {
    for (int i = 0; i < 50; ++i) {
      const uint32_t x = static_cast<uint32_t>(random()) >> (i % 3 == 0 ? random() % 32 : 0);
      EXPECT_EQ(RunText(c.text, "=r,r", {x})[0], c.function(x)) << c.text << x;
    }
  }
}

// Two numbers in a register.
TEST(ProgramTest, HalvesAndSmallerFloats) {
  // 1.5 and -2 as f16 and as bf16.
  constexpr uint64_t kHalves = 0xC0003E00;
  constexpr uint64_t kBrains = 0xC0003FC0;
  EXPECT_EQ(RunText("fma.rn.f16x2 $0, $1, $1, $1;", "=r,r", {kHalves})[0], 0x40004380u);  // 2, 3.75
  EXPECT_EQ(RunText("mul.bf16x2 $0, $1, $1;", "=r,r", {kBrains})[0], 0x40804010u);        // 4, 2.25
  EXPECT_EQ(RunText("min.f16x2 $0, $1, $2;", "=r,r,r", {kHalves, 0})[0], 0xC0000000u);
  EXPECT_EQ(RunText("max.bf16x2 $0, $1, $2;", "=r,r,r", {kBrains, 0})[0], 0x00003FC0u);
  EXPECT_EQ(RunText("{.reg .b32 c; mov.b32 c, 0x64806480; sub.f16x2 $0, $1, c;}", "=r,r",
                    {0x64816480})[0],
            0x3C000000u);
  EXPECT_EQ(RunText("tanh.approx.bf16 $0, $1;", "=h,h", {0x3F80})[0], 0x3F43u);  // 0.7616
  EXPECT_EQ(RunText("mov.b16 $0, $1;", "=h,h", {0x3F80})[0], 0x3F80u);
  EXPECT_EQ(RunText("cvt.rn.bf16.f32 $0, $1;", "=h,f", {0x3F808000})[0], 0x3F80u);  // to even
  EXPECT_EQ(RunText("cvt.rz.bf16.f32 $0, $1;", "=h,f", {0x3F81FFFF})[0], 0x3F81u);
  EXPECT_EQ(RunText("cvt.rn.bf16x2.f32 $0, $1, $2;", "=r,f,f", {Bits(-2), Bits(1.5f)})[0], kBrains);
  EXPECT_EQ(RunText("cvt.rn.relu.f16x2.f32 $0, $1, $2;", "=r,f,f", {Bits(-2), Bits(1.5f)})[0],
            0x00003E00u);
  EXPECT_EQ(RunText("cvt.f32.bf16 $0, $1;", "=f,h", {0x3FC0})[0], Bits(1.5f));
  EXPECT_EQ(RunText("cvt.rna.tf32.f32 $0, $1;", "=r,r", {0x3F801000})[0], 0x3F802000u);
  // The high byte is that of the first operand; 1000 is out of range.
  EXPECT_EQ(RunText("cvt.rn.satfinite.e4m3x2.f32 $0, 0.0, $1;", "=h,f", {Bits(1000)})[0], 0x007Eu);
  EXPECT_EQ(RunText("cvt.rn.f16x2.e4m3x2 $0, $1;", "=r,h", {0xB838})[0], 0xBC003C00u);
  // a * b + c just above the middle between two numbers: 1 + 2^-11 + 2^-24.
  EXPECT_EQ(RunText("fma.rn.f16 $0, $1, $2, $3;", "=h,h,h,h", {0x1001, 0x1000, 0x3C00})[0],
            0x3C00u);
  EXPECT_EQ(RunText("fma.rn.f16 $0, $1, $2, $3;", "=h,h,h,h", {0x2801, 0x2400, 0x3C00})[0],
            0x3C01u);
}

// As Triton 3.6 unpacks fp8e4b15 and int8.
TEST(ProgramTest, SeveralElements) {
  const auto halves = RunText(
      "{\n.reg .b32 a<2>, b<2>;\nprmt.b32 a0, 0, $2, 0x5746;\nand.b32 b0, a0, 0x7f007f00;\n"
      "and.b32 b1, a0, 0x00ff00ff;\nand.b32 a1, a0, 0x00800080;\nshr.b32  b0, b0, 1;\n"
      "add.u32 b1, b1, a1;\nlop3.b32 $0, b0, 0x80008000, a0, 0xf8;\nshl.b32 $1, b1, 7;\n}\n",
      "=r,=r,r", {0xB8787038});
  // The exponent's bias is 15, as that of f16: 2^-8, 2^-1, 1, -2^-8.
  EXPECT_EQ(halves, (std::vector<uint64_t>{0x3800'1C00, 0x9C00'3C00}));
  const auto bytes = RunText(
      "{ .reg .b8 tmp<4>; mov.b32 {tmp0, tmp1, tmp2, tmp3}, $4; cvt.u32.u8 $0, tmp0; cvt.u32.u8 "
      "$1, tmp1; cvt.u32.u8 $2, tmp2; "
      "cvt.u32.u8 $3, tmp3; } /* to floats */ cvt.rn.f32.s32 $3, $3;",
      "=r,=r,=r,=r,r", {0xFF030201});
  EXPECT_EQ(bytes, (std::vector<uint64_t>{1, 2, 3, Bits(255)}));
  EXPECT_EQ(RunText("griddepcontrol.wait; // dummy $0", "=r", {}), std::vector<uint64_t>{0});
}

TEST(ProgramTest, WhatIsNotKnownIsNamed) {
  for (const absl::string_view text :
       {"mov.u64 $0, %globaltimer;", "mov.u32 $0, %smid;", "mov.u32 $0, %laneid;",
        "ld.global.b32 $0, [$1];", "shfl.sync.bfly.b32 $0, $1, 1, 31, -1;", "L: bra L;",
        "add.f32x2 $0, $1, $1;", "bar.sync 0;", "cvt.rn.satfinite.e2m1x2.f32 $0, $1, $1;",
        "add.rz.f32 $0, $1, $1;", "atom.add.u32 $0, [$1], 1;", "mov.b32 $1, $0;",
        "add.u64 $0, $1, $1;", "add.u32 $0, $1;", "mov.b32 $0, {$1, $1};", "add..u32 $0, $1, $1;",
        "."}) {
    EXPECT_TRUE(absl::StrContains(Refusal(text, "=r,r"), text.substr(0, text.find(';'))))
        << text << "\n"
        << Refusal(text, "=r,r");
  }
  EXPECT_EQ(Refusal("{ .reg .b32 t; add.u32 $0, t, 1; }", "=r,r"),
            "instruction add.u32 $0, t, 1 (t is read before it is written)");
  EXPECT_EQ(Refusal("{ mov.b32 $0, $1;", "=r,r"), "a { without }");
  EXPECT_EQ(Refusal("mov.b32 $0, $2;", "=r,=r,r"), "nothing writes $1");
  EXPECT_NE(Refusal(".reg .b32 a<99999999999999999999>;", "=r"), "");
  EXPECT_NE(Refusal(".reg .b32 a<18446744073709551615>;", "=r"), "");
  EXPECT_NE(Refusal("mov.b32 , ;", "=r"), "");
  EXPECT_NE(Refusal("mov.b32 {}, $0;", "=r"), "");
  EXPECT_NE(Refusal("mov.b32 $0, 1", "=r"), "");
  EXPECT_NE(Refusal("mov.b32 $0, $1;", "=r,0"), "");
}

}  // namespace
}  // namespace tritonrl::ttir::ptx
