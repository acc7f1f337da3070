// Numbers of constants become the bits of their format.
#include <cmath>
#include <limits>
#include <string>

#include "exec/ttir/constant_parser.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(ConstantTest, IntegersWrapIntoTheirWidth) {
  EXPECT_EQ(EncodeNumber("-1", ScalarKind::kI8), 0xFFu);
  EXPECT_EQ(EncodeNumber("255", ScalarKind::kI8), 0xFFu);
  EXPECT_EQ(EncodeNumber("256", ScalarKind::kI8), std::nullopt);
  EXPECT_EQ(EncodeNumber("-129", ScalarKind::kI8), std::nullopt);
  EXPECT_EQ(EncodeNumber("-128", ScalarKind::kI8), 0x80u);
  EXPECT_EQ(EncodeNumber("true", ScalarKind::kI1), 1u);
  EXPECT_EQ(EncodeNumber("-9223372036854775808", ScalarKind::kI64), uint64_t{1} << 63);
  EXPECT_EQ(EncodeNumber("18446744073709551616", ScalarKind::kI64), std::nullopt);
  EXPECT_EQ(EncodeNumber("1.5", ScalarKind::kI32), std::nullopt);
}

TEST(ConstantTest, FloatsHaveTheBitsOfTheirFormat) {
  EXPECT_EQ(EncodeNumber("1.000000e+00", ScalarKind::kF32), 0x3F800000u);
  EXPECT_EQ(EncodeNumber("0xFF800000", ScalarKind::kF32), 0xFF800000u);
  EXPECT_EQ(EncodeNumber("3.40282347E+38", ScalarKind::kF32), 0x7F7FFFFFu);
  EXPECT_EQ(EncodeNumber("2.000000e+00", ScalarKind::kF16), 0x4000u);
  EXPECT_EQ(EncodeNumber("0x7E00", ScalarKind::kF16), 0x7E00u);
  EXPECT_EQ(EncodeNumber("1.000000e+00", ScalarKind::kBF16), 0x3F80u);
  EXPECT_EQ(EncodeNumber("-0.000000e+00", ScalarKind::kF64), uint64_t{1} << 63);
  EXPECT_EQ(EncodeNumber("0x17FC00000", ScalarKind::kF32), std::nullopt);
  EXPECT_EQ(EncodeNumber("true", ScalarKind::kF32), std::nullopt);
}

TEST(ConstantTest, SmallFloatsRoundToNearestEven) {
  EXPECT_EQ(EncodeFloat(1.0, ScalarKind::kF8E4M3FN), 0x38u);
  EXPECT_EQ(EncodeFloat(448.0, ScalarKind::kF8E4M3FN), 0x7Eu);
  EXPECT_EQ(EncodeFloat(460.0, ScalarKind::kF8E4M3FN), 0x7Eu);
  EXPECT_EQ(EncodeFloat(480.0, ScalarKind::kF8E4M3FN), 0x7Fu);  // NaN: there is no infinity
  EXPECT_EQ(EncodeFloat(-1.0, ScalarKind::kF8E5M2), 0xBCu);
  EXPECT_EQ(EncodeFloat(kInfinity, ScalarKind::kF8E5M2), 0x7Cu);
  EXPECT_EQ(EncodeFloat(65536.0, ScalarKind::kF8E5M2), 0x7Cu);
  EXPECT_EQ(EncodeFloat(1.0625, ScalarKind::kF8E4M3FN), 0x38u);  // a tie to even
  EXPECT_EQ(EncodeFloat(1.1875, ScalarKind::kF8E4M3FN), 0x3Au);
  EXPECT_EQ(EncodeFloat(1.0, ScalarKind::kF8E4M3FNUZ), 0x40u);
  EXPECT_EQ(EncodeFloat(-0.0, ScalarKind::kF8E4M3FNUZ), 0u);
  EXPECT_EQ(EncodeFloat(std::nan(""), ScalarKind::kF8E5M2FNUZ), 0x80u);
}

TEST(ConstantTest, SubnormalsAndLimitsOfHalfPrecision) {
  EXPECT_EQ(EncodeFloat(std::ldexp(1.0, -24), ScalarKind::kF16), 1u);
  EXPECT_EQ(EncodeFloat(std::ldexp(1.0, -25), ScalarKind::kF16), 0u);
  EXPECT_EQ(EncodeFloat(std::ldexp(1.5, -25), ScalarKind::kF16), 1u);
  EXPECT_EQ(EncodeFloat(std::ldexp(1.0, -14), ScalarKind::kF16), 0x0400u);
  EXPECT_EQ(EncodeFloat(0.0, ScalarKind::kF16), 0u);
  EXPECT_EQ(EncodeFloat(-0.0, ScalarKind::kF16), 0x8000u);
  EXPECT_EQ(EncodeFloat(0.0, ScalarKind::kBF16), 0u);
  EXPECT_EQ(EncodeFloat(0.0, ScalarKind::kF8E5M2), 0u);
  EXPECT_EQ(EncodeFloat(65504.0, ScalarKind::kF16), 0x7BFFu);
  EXPECT_EQ(EncodeFloat(65520.0, ScalarKind::kF16), 0x7C00u);
  EXPECT_EQ(EncodeFloat(-1e300, ScalarKind::kF16), 0xFC00u);
  EXPECT_EQ(EncodeFloat(1e-300, ScalarKind::kF16), 0u);
}

absl::StatusOr<Attribute> Parse(const std::string& text) {
  Lexer lexer(text);
  return ParseConstant(lexer);
}

TEST(ConstantTest, DenseValuesAreSplatsListsAndRawBytes) {
  EXPECT_EQ(Parse("dense<2.0> : tensor<4xf32>")->bits, std::vector<uint64_t>{0x40000000});
  EXPECT_EQ(Parse("dense<[[1, -1], [2, 3]]> : tensor<2x2xi16>")->bits,
            (std::vector<uint64_t>{1, 0xFFFF, 2, 3}));
  EXPECT_EQ(Parse("dense<[true, false]> : tensor<2xi1>")->bits, (std::vector<uint64_t>{1, 0}));
  EXPECT_EQ(Parse("dense<\"0x0100FFFF\"> : tensor<2xi16>")->bits,
            (std::vector<uint64_t>{1, 0xFFFF}));
  EXPECT_EQ(Parse("dense<0xFF800000> : tensor<8xf32>")->bits, std::vector<uint64_t>{0xFF800000});
}

TEST(ConstantTest, ValuesThatDoNotFitAreRefused) {
  for (const char* text :
       {"dense<[1, 2]> : tensor<4xi32>", "dense<\"0x01\"> : tensor<4xi32>", "300 : i8",
        "dense<\"0x0G\"> : tensor<1xi8>", "1.5 : i32", "1 : !tt.ptr<f32>", "dense<> : tensor<1xi8>",
        "dense<1> : i32x", "true : f32x", "dense<[1> : tensor<1xi8>"}) {
    Lexer lexer(text);
    const auto value = ParseConstant(lexer);
    EXPECT_FALSE(value.ok() && lexer.token().kind == TokenKind::kEnd) << text;
  }
}

}  // namespace
}  // namespace tritonrl::ttir
