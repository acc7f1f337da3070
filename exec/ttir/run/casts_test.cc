// Conversions, and functions of mathematics.
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "exec/ttir/run/testing/kernel_text.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <typename R, typename T>
std::vector<R> Cast(const std::string& line, const std::string& in, const std::string& out,
                    const std::vector<T>& x) {
  return RunBody<R, T>("    %r = " + line + "\n", in, out, x, x);
}

TEST(CastTest, FloatsToIntegersSaturate) {
  const std::vector<float> x = {1.9f, -1.9f, 3e9f, -3e9f, kInfinity, -kInfinity, kNan, 0.5f};
  EXPECT_EQ((Cast<int32_t, float>("arith.fptosi %x : $T to $R", "f32", "i32", x)),
            (std::vector<int32_t>{1, -1, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 0, 0}));
  EXPECT_EQ((Cast<uint32_t, float>("arith.fptoui %x : $T to $R", "f32", "i32", x)),
            (std::vector<uint32_t>{1, 0, 3000000000u, 0, UINT32_MAX, 0, 0, 0}));
  EXPECT_EQ((Cast<int8_t, float>("arith.fptosi %x : $T to $R", "f32", "i8", x)),
            (std::vector<int8_t>{1, -1, 127, -128, 127, -128, 0, 0}));
  EXPECT_EQ((Cast<int64_t, float>("arith.fptosi %x : $T to $R", "f32", "i64", x)),
            (std::vector<int64_t>{1, -1, 3000000000, -3000000000, INT64_MAX, INT64_MIN, 0, 0}));
}

TEST(CastTest, IntegersExtendWithTheirSignOrWithout) {
  const std::vector<int8_t> x = {-1, 127, -128, 5};
  EXPECT_EQ((Cast<int32_t, int8_t>("arith.extsi %x : $T to $R", "i8", "i32", x)),
            (std::vector<int32_t>{-1, 127, -128, 5}));
  EXPECT_EQ((Cast<int32_t, int8_t>("arith.extui %x : $T to $R", "i8", "i32", x)),
            (std::vector<int32_t>{255, 127, 128, 5}));
  EXPECT_EQ((Cast<float, int8_t>("arith.uitofp %x : $T to $R", "i8", "f32", x)),
            (std::vector<float>{255, 127, 128, 5}));
  const std::vector<uint8_t> bits = {0, 1};
  EXPECT_EQ((Cast<int32_t, uint8_t>("arith.extsi %x : $T to $R", "i1", "i32", bits)),
            (std::vector<int32_t>{0, -1}));
  const auto floats = Cast<float, uint8_t>("arith.sitofp %x : $T to $R", "i1", "f32", bits);
  EXPECT_EQ(floats, (std::vector<float>{0, -1}));
  EXPECT_FALSE(std::signbit(floats[0]));
  EXPECT_EQ((Cast<int16_t, int32_t>("arith.trunci %x : $T to $R", "i32", "i16",
                                    std::vector<int32_t>{65537, -32769})),
            (std::vector<int16_t>{1, 32767}));
}

TEST(CastTest, HalvesRoundToEvenAndOverflowToInfinity) {
  const std::vector<float> x = {1.0f + 0x1p-11f, 1.0f + 3 * 0x1p-11f, 65519.0f, 65520.0f,
                                0x1p-25f,        0x1.8p-25f,          -0.0f,    kNan};
  const auto bits = Cast<uint16_t, float>("arith.truncf %x : $T to $R", "f32", "f16", x);
  EXPECT_EQ(bits[0], 0x3C00);
  EXPECT_EQ(bits[1], 0x3C02);
  EXPECT_EQ(bits[2], 0x7BFF);
  EXPECT_EQ(bits[3], 0x7C00);
  EXPECT_EQ(bits[4], 0x0000);
  EXPECT_EQ(bits[5], 0x0001);
  EXPECT_EQ(bits[6], 0x8000);
  EXPECT_EQ(bits[7] & 0x7C00, 0x7C00);
  EXPECT_NE(bits[7] & 0x03FF, 0);
  const auto cut =
      Cast<uint16_t, float>("tt.fp_to_fp %x, rounding = rtz : $T -> $R", "f32", "f16", x);
  EXPECT_EQ(cut[1], 0x3C01);
  EXPECT_EQ(cut[3], 0x7BFF);
}

TEST(CastTest, DoublesAreCutOffToFloats) {
  const std::vector<double> x = {1.0 + 0x1.8p-23, -1.0 - 0x1.8p-23, 1e300, -INFINITY};
  EXPECT_EQ((Cast<float, double>("tt.fp_to_fp %x, rounding = rtz : $T -> $R", "f64", "f32", x)),
            (std::vector<float>{1.0f + 0x1p-23f, -1.0f - 0x1p-23f, 0x1.fffffep127f, -INFINITY}));
}

TEST(CastTest, DoublesRoundToHalvesOnce) {
  // As a float it would be the tie 1 + 2^-11, and then round to even.
  const std::vector<double> x = {1.0 + 0x1p-11 + 0x1p-40, 1.0 + 0x1p-11, 1e300, -1e300};
  EXPECT_EQ((Cast<uint16_t, double>("arith.truncf %x : $T to $R", "f64", "f16", x)),
            (std::vector<uint16_t>{0x3C01, 0x3C00, 0x7C00, 0xFC00}));
  const std::vector<int64_t> integers = {2049, 2051, 65535, (int64_t{1} << 62) + 1};
  EXPECT_EQ((Cast<uint16_t, int64_t>("arith.sitofp %x : $T to $R", "i64", "f16", integers)),
            (std::vector<uint16_t>{0x6800, 0x6802, 0x7C00, 0x7C00}));
}

TEST(CastTest, EightBitFloatsSaturate) {
  const std::vector<float> x = {448.0f, 1000.0f, kInfinity, kNan, 0x1p-9f, 0x1p-10f, 17.0f, -19.0f};
  // 17 is between 16 and 18, 19 between 18 and 20: both ties go to the even mantissa.
  EXPECT_EQ(
      (Cast<uint8_t, float>("tt.fp_to_fp %x, rounding = rtne : $T -> $R", "f32", "f8E4M3FN", x)),
      (std::vector<uint8_t>{0x7E, 0x7E, 0x7E, 0x7F, 0x01, 0x00, 0x58, 0xDA}));
  EXPECT_EQ((Cast<uint8_t, float>("tt.fp_to_fp %x, rounding = rtne : $T -> $R", "f32", "f8E5M2",
                                  std::vector<float>{57344.0f, 1e6f, 1.125f, 1.375f})),
            (std::vector<uint8_t>{0x7B, 0x7B, 0x3C, 0x3E}));
}

TEST(CastTest, BitcastsKeepBits) {
  EXPECT_EQ((Cast<int32_t, float>("tt.bitcast %x : $T -> $R", "f32", "i32",
                                  std::vector<float>{1.0f, -2.0f})),
            (std::vector<int32_t>{0x3F800000, static_cast<int32_t>(0xC0000000)}));
  EXPECT_EQ((Cast<uint16_t, uint16_t>("tt.bitcast %x : $T -> $R", "f16", "i16",
                                      std::vector<uint16_t>{0x3C00, 0x0001})),
            (std::vector<uint16_t>{0x3C00, 0x0001}));
  EXPECT_EQ((Cast<uint16_t, uint16_t>("tt.bitcast %x : $T -> $R", "f16", "bf16",
                                      std::vector<uint16_t>{0x3C00, 0x4000})),
            (std::vector<uint16_t>{0x3C00, 0x4000}));
}

// Distance in units of the last place.
int64_t Ulps(float a, float b) {
  if (std::isnan(a) && std::isnan(b)) return 0;
  const auto order = [](float x) {
    const auto bits = std::bit_cast<int32_t>(x);
    return int64_t{bits < 0 ? INT32_MIN - bits : bits};
  };
  return std::abs(order(a) - order(b));
}

TEST(MathTest, FunctionsAreWithinOneUlpOfDouble) {
  struct Case {
    std::string name;
    std::function<double(double)> function;
    float low, high;
  };
  const std::vector<Case> cases = {
      {"math.exp", [](double x) { return std::exp(x); }, -105, 90},
      {"math.exp2", [](double x) { return std::exp2(x); }, -152, 129},
      {"math.log", [](double x) { return std::log(x); }, 0, 4},
      {"math.log2", [](double x) { return std::log2(x); }, 0, 1e6},
      {"math.log10", [](double x) { return std::log10(x); }, 0, 100},
      {"math.tanh", [](double x) { return std::tanh(x); }, -10, 10},
      {"math.tanh", [](double x) { return std::tanh(x); }, -0.001f, 0.001f},
      {"math.rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0, 100},
      {"math.sqrt", [](double x) { return std::sqrt(x); }, 0, 100},
      {"math.sin", [](double x) { return std::sin(x); }, -100, 100},
      {"math.erf", [](double x) { return std::erf(x); }, -4, 4},
  };
  std::mt19937 random(20);
  for (const Case& test : cases) {
    std::uniform_real_distribution<float> distribution(test.low, test.high);
    std::vector<float> x(1024);
    for (float& value : x) value = distribution(random);
    const auto result =
        RunBody<float, float>("    %r = " + test.name + " %x : $T\n", "f32", "f32", x, x);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_LE(Ulps(result[i], static_cast<float>(test.function(x[i]))), 1)
          << test.name << " of " << x[i] << " is " << result[i];
    }
  }
}

TEST(MathTest, SpecialValues) {
  const std::vector<float> x = {0.0f, -0.0f, kInfinity, -kInfinity, kNan, -1.0f, 0x1p-149f, 1.0f};
  const auto run = [&](const std::string& name) {
    return RunBody<float, float>("    %r = " + name + " %x : $T\n", "f32", "f32", x, x);
  };
  const auto exp = run("math.exp");
  EXPECT_EQ(exp[0], 1);
  EXPECT_EQ(exp[2], kInfinity);
  EXPECT_EQ(exp[3], 0);
  EXPECT_TRUE(std::isnan(exp[4]));
  const auto log = run("math.log2");
  EXPECT_EQ(log[0], -kInfinity);
  EXPECT_EQ(log[1], -kInfinity);
  EXPECT_EQ(log[2], kInfinity);
  EXPECT_TRUE(std::isnan(log[3]) && std::isnan(log[4]) && std::isnan(log[5]));
  EXPECT_EQ(log[6], -149);
  EXPECT_EQ(log[7], 0);
  const auto tanh = run("math.tanh");
  EXPECT_TRUE(std::signbit(tanh[1]));
  EXPECT_EQ(tanh[2], 1);
  EXPECT_EQ(tanh[3], -1);
  EXPECT_TRUE(std::isnan(tanh[4]));
}

}  // namespace
}  // namespace tritonrl::ttir
