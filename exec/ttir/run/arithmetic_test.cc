// Elementwise integer and float arithmetic, comparisons and selections.
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

constexpr int kCount = 64;

template <typename T>
std::vector<T> RandomIntegers(int seed, T low, T high) {
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  std::uniform_int_distribution<int64_t> distribution(low, high);
  std::vector<T> values(kCount);
  for (T& value : values) value = static_cast<T>(distribution(random));
  return values;
}

template <typename T>
void ExpectIntegers(const std::string& name, const std::string& element, std::vector<T> x,
                    std::vector<T> y, const std::function<T(T, T)>& expected) {
  const auto result = RunBody<T, T>("    %r = " + name + " %x, %y : $T\n", element, element, x, y);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(result[i], expected(x[i], y[i])) << name << " of " << +x[i] << " and " << +y[i];
  }
}

TEST(IntegerTest, ArithmeticWrapsAround) {
  const auto x = RandomIntegers<int32_t>(1, INT32_MIN, INT32_MAX);
  const auto y = RandomIntegers<int32_t>(2, INT32_MIN, INT32_MAX);
  using Function = std::function<int32_t(int32_t, int32_t)>;
  const auto wrap = [](int64_t value) {
    return static_cast<int32_t>(static_cast<uint32_t>(value));
  };
  ExpectIntegers<int32_t>("arith.addi", "i32", x, y,
                          Function([&](int32_t a, int32_t b) { return wrap(int64_t{a} + b); }));
  ExpectIntegers<int32_t>("arith.subi", "i32", x, y,
                          Function([&](int32_t a, int32_t b) { return wrap(int64_t{a} - b); }));
  ExpectIntegers<int32_t>("arith.muli", "i32", x, y,
                          Function([&](int32_t a, int32_t b) { return wrap(int64_t{a} * b); }));
  ExpectIntegers<int32_t>("arith.maxui", "i32", x, y, Function([&](int32_t a, int32_t b) {
                            return static_cast<uint32_t>(a) > static_cast<uint32_t>(b) ? a : b;
                          }));
  ExpectIntegers<int32_t>(
      "tt.mulhiui", "i32", x, y, Function([&](int32_t a, int32_t b) {
        return wrap(static_cast<int64_t>(
            (uint64_t{static_cast<uint32_t>(a)} * static_cast<uint32_t>(b)) >> 32));
      }));
}

TEST(IntegerTest, DivisionTruncatesAndHasResultsForZeroAndTheSmallestNumber) {
  std::vector<int32_t> x = RandomIntegers<int32_t>(3, INT32_MIN, INT32_MAX);
  std::vector<int32_t> y = RandomIntegers<int32_t>(4, -50, 50);
  x[0] = INT32_MIN, y[0] = -1;
  x[1] = 7, y[1] = 0;
  x[2] = INT32_MAX, y[2] = 1;
  x[3] = -7, y[3] = 2;
  const auto quotient = [](int64_t a, int64_t b) {
    return b == 0 ? -1 : static_cast<int32_t>(static_cast<uint32_t>(a / b));
  };
  const auto rest = [](int64_t a, int64_t b) { return static_cast<int32_t>(b == 0 ? a : a % b); };
  ExpectIntegers<int32_t>("arith.divsi", "i32", x, y, quotient);
  ExpectIntegers<int32_t>("arith.remsi", "i32", x, y, rest);
  ExpectIntegers<int32_t>("arith.floordivsi", "i32", x, y, [&](int32_t a, int32_t b) {
    if (b == 0) return -1;
    return static_cast<int32_t>(static_cast<int64_t>(std::floor(static_cast<double>(a) / b)));
  });
  ExpectIntegers<int32_t>("arith.divui", "i32", x, y, [](int32_t a, int32_t b) {
    return b == 0 ? -1 : static_cast<int32_t>(static_cast<uint32_t>(a) / static_cast<uint32_t>(b));
  });
  std::vector<int64_t> wide(x.begin(), x.end());
  std::vector<int64_t> by(y.begin(), y.end());
  wide[4] = INT64_MIN, by[4] = -1;
  ExpectIntegers<int64_t>("arith.divsi", "i64", wide, by, [](int64_t a, int64_t b) {
    return b == 0    ? int64_t{-1}
           : b == -1 ? static_cast<int64_t>(0 - static_cast<uint64_t>(a))
                     : a / b;
  });
}

TEST(IntegerTest, ShiftsByTheWidthOrMoreGiveZeroOrTheSign) {
  const auto x = RandomIntegers<int8_t>(5, -128, 127);
  const auto y = RandomIntegers<int8_t>(6, 0, 20);
  ExpectIntegers<int8_t>("arith.shli", "i8", x, y, [](int8_t a, int8_t b) {
    return static_cast<int8_t>(b >= 8 ? 0 : a << b);
  });
  ExpectIntegers<int8_t>("arith.shrsi", "i8", x, y, [](int8_t a, int8_t b) {
    return static_cast<int8_t>(a >> (b >= 8 ? 7 : b));
  });
  ExpectIntegers<int8_t>("arith.shrui", "i8", x, y, [](int8_t a, int8_t b) {
    return static_cast<int8_t>(b >= 8 ? 0 : static_cast<uint8_t>(a) >> b);
  });
}

TEST(IntegerTest, AUniformOperandGivesTheSameAsATensor) {
  const auto x = RandomIntegers<int32_t>(7, -1000, 1000);
  const auto right = RunBody<int32_t, int32_t>(
      "    %c = arith.constant dense<7> : $T\n    %r = arith.subi %x, %c : $T\n", "i32", "i32", x,
      x);
  const auto left = RunBody<int32_t, int32_t>(
      "    %c = arith.constant dense<7> : $T\n    %r = arith.subi %c, %x : $T\n", "i32", "i32", x,
      x);
  const auto both = RunBody<int32_t, int32_t>(
      "    %c = arith.constant dense<7> : $T\n    %r = arith.muli %c, %c : $T\n", "i32", "i32", x,
      x);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(right[i], x[i] - 7);
    EXPECT_EQ(left[i], 7 - x[i]);
    EXPECT_EQ(both[i], 49);
  }
}

TEST(IntegerTest, ExtendedProductsHaveBothHalves) {
  const auto x = RandomIntegers<int32_t>(8, INT32_MIN, INT32_MAX);
  const auto y = RandomIntegers<int32_t>(9, INT32_MIN, INT32_MAX);
  const auto high = RunBody<int32_t, int32_t>("    %low, %r = arith.mulsi_extended %x, %y : $T\n",
                                              "i32", "i32", x, y);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(high[i], static_cast<int32_t>((int64_t{x[i]} * y[i]) >> 32));
  }
}

TEST(CompareTest, SignedAndUnsignedOrders) {
  const auto x = RandomIntegers<int32_t>(10, -3, 3);
  const auto y = RandomIntegers<int32_t>(11, -3, 3);
  const auto compare = [&](const std::string& predicate) {
    return RunBody<uint8_t, int32_t>("    %r = arith.cmpi " + predicate + ", %x, %y : $T\n", "i32",
                                     "i1", x, y);
  };
  const auto slt = compare("slt");
  const auto uge = compare("uge");
  const auto ne = compare("ne");
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(slt[i], x[i] < y[i]);
    EXPECT_EQ(uge[i], static_cast<uint32_t>(x[i]) >= static_cast<uint32_t>(y[i]));
    EXPECT_EQ(ne[i], x[i] != y[i]);
  }
}

TEST(CompareTest, NanIsUnordered) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {1, nan, 2, 3};
  const std::vector<float> y = {1, 1, nan, 2};
  const auto compare = [&](const std::string& predicate) {
    return RunBody<uint8_t, float>("    %r = arith.cmpf " + predicate + ", %x, %y : $T\n", "f32",
                                   "i1", x, y);
  };
  EXPECT_EQ(compare("oeq"), (std::vector<uint8_t>{1, 0, 0, 0}));
  EXPECT_EQ(compare("une"), (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(compare("ugt"), (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(compare("ord"), (std::vector<uint8_t>{1, 0, 0, 1}));
  EXPECT_EQ(compare("true"), (std::vector<uint8_t>{1, 1, 1, 1}));
}

TEST(FloatTest, MaximaWithNanAndZeros) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {nan, 1, -0.0f, 2};
  const std::vector<float> y = {1, nan, 0.0f, 3};
  const auto number =
      RunBody<float, float>("    %r = arith.maxnumf %x, %y : $T\n", "f32", "f32", x, y);
  EXPECT_EQ(number[0], 1);
  EXPECT_EQ(number[1], 1);
  EXPECT_FALSE(std::signbit(number[2]));
  EXPECT_EQ(number[3], 3);
  const auto nans =
      RunBody<float, float>("    %r = arith.maximumf %x, %y : $T\n", "f32", "f32", x, y);
  EXPECT_TRUE(std::isnan(nans[0]) && std::isnan(nans[1]));
  EXPECT_EQ(nans[3], 3);
  const auto smaller =
      RunBody<float, float>("    %r = arith.minnumf %x, %y : $T\n", "f32", "f32", x, y);
  EXPECT_TRUE(std::signbit(smaller[2]));
}

TEST(FloatTest, ArithmeticIsThatOfTheFormat) {
  std::mt19937 random(12);
  std::normal_distribution<float> normal;
  std::vector<float> x(kCount);
  std::vector<float> y(kCount);
  for (float& value : x) value = normal(random);
  for (float& value : y) value = normal(random);
  const auto quotient =
      RunBody<float, float>("    %r = arith.divf %x, %y : $T\n", "f32", "f32", x, y);
  const auto fma = RunBody<float, float>("    %r = math.fma %x, %y, %x : $T\n", "f32", "f32", x, y);
  const auto clamped = RunBody<float, float>(
      "    %l = arith.constant dense<-5.000000e-01> : $T\n"
      "    %r = tt.clampf %x, %l, %y, propagateNan = none : $T\n",
      "f32", "f32", x, y);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(quotient[i], x[i] / y[i]);
    EXPECT_EQ(fma[i], std::fma(x[i], y[i], x[i]));
    EXPECT_EQ(clamped[i], std::fmin(std::fmax(x[i], -0.5f), y[i]));
  }
}

TEST(FloatTest, HalvesRoundAfterEachOperation) {
  // 1 + 2^-11 is half way between 1 and its successor: to even is 1. 65504 * 2 is too large.
  const std::vector<uint16_t> x = {0x3C00, 0x7BFF, 0x0001, 0x3C01};
  const std::vector<uint16_t> y = {0x1000, 0x7BFF, 0x0001, 0x1000};
  const auto sum =
      RunBody<uint16_t, uint16_t>("    %r = arith.addf %x, %y : $T\n", "f16", "f16", x, y);
  EXPECT_EQ(sum, (std::vector<uint16_t>{0x3C00, 0x7C00, 0x0002, 0x3C02}));
  const auto bfloat = RunBody<uint16_t, uint16_t>("    %r = arith.addf %x, %y : $T\n", "bf16",
                                                  "bf16", {0x3F80, 0x3F81, 0x7F7F, 0xBF80},
                                                  {0x3B80, 0x3B80, 0x7F7F, 0x3F80});
  EXPECT_EQ(bfloat, (std::vector<uint16_t>{0x3F80, 0x3F82, 0x7F80, 0x0000}));
}

TEST(SelectTest, TakesEachElementFromOneSide) {
  const auto x = RandomIntegers<int32_t>(13, -9, 9);
  const auto y = RandomIntegers<int32_t>(14, -9, 9);
  const auto result = RunBody<int32_t, int32_t>(
      "    %c = arith.cmpi slt, %x, %y : $T\n"
      "    %s = arith.select %c, %x, %y : tensor<$Nxi1>, $T\n"
      "    %z = arith.constant dense<0> : $T\n"
      "    %r = arith.select %c, %s, %z : tensor<$Nxi1>, $T\n",
      "i32", "i32", x, y);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(result[i], x[i] < y[i] ? x[i] : 0);
}

TEST(SelectTest, OneBitAddsWithoutCarryAndIsMinusOneWhereSignsCount) {
  const std::vector<uint8_t> x = {0, 0, 1, 1};
  const std::vector<uint8_t> y = {0, 1, 0, 1};
  const auto run = [&](const std::string& line) {
    return RunBody<uint8_t, uint8_t>("    %r = " + line + " %x, %y : $T\n", "i1", "i1", x, y);
  };
  EXPECT_EQ(run("arith.addi"), (std::vector<uint8_t>{0, 1, 1, 0}));
  EXPECT_EQ(run("arith.muli"), (std::vector<uint8_t>{0, 0, 0, 1}));
  EXPECT_EQ(run("arith.maxsi"), (std::vector<uint8_t>{0, 0, 0, 1}));
  EXPECT_EQ(run("arith.cmpi slt,"), (std::vector<uint8_t>{0, 0, 1, 0}));
}

}  // namespace
}  // namespace tritonrl::ttir
