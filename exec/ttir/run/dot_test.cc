// tt.dot against plain loops.
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "exec/ttir/run/testing/dot_text.h"
#include "gtest/gtest.h"

namespace tritonrl::ttir {
namespace {

std::vector<float> RandomFloats(int seed, int count) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

float CutToTf32(float x) { return std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0xFFFFE000u); }

TEST(DotTest, FloatsOfManyShapes) {
  const int shapes[][3] = {{64, 64, 32}, {16, 16, 16}, {32, 8, 64},
                           {4, 2, 8},    {2, 128, 16}, {1, 1, 1}};
  for (const auto& [m, n, k] : shapes) {
    const auto x = RandomFloats(1, m * k);
    const auto y = RandomFloats(2, k * n);
    const auto c = RandomFloats(3, m * n);
    const auto result = RunDot(DotText({m, n, k, "f32", "f32", "f32"}, ""), x, y, c);
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        double sum = c[i * n + j];
        for (int l = 0; l < k; ++l) sum += static_cast<double>(x[i * k + l]) * y[l * n + j];
        EXPECT_NEAR(result[i * n + j], sum, 2e-5) << m << " " << n << " " << k;
      }
    }
  }
}

TEST(DotTest, Tf32CutsTheOperandsAndAddsInOrder) {
  constexpr int kSize = 16;
  const auto x = RandomFloats(4, kSize * kSize);
  const auto y = RandomFloats(5, kSize * kSize);
  const std::vector<float> c(kSize * kSize);
  const auto result = RunDot(
      DotText({kSize, kSize, kSize, "f32", "f32", "f32"}, ", inputPrecision = tf32"), x, y, c);
  for (int i = 0; i < kSize; ++i) {
    for (int j = 0; j < kSize; ++j) {
      float sum = 0;  // the products are exact, so that fma makes no difference
      for (int l = 0; l < kSize; ++l) {
        sum += CutToTf32(x[i * kSize + l]) * CutToTf32(y[l * kSize + j]);
      }
      EXPECT_EQ(result[i * kSize + j], sum);
    }
  }
}

TEST(DotTest, HalvesAreMultipliedExactlyAndAHalfAccumulatorRoundsOnce) {
  constexpr int kSize = 16;
  // Bits of 1 + j / 1024.
  std::vector<uint16_t> x(kSize * kSize);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint16_t>(0x3C00 + i % 7);
  const auto value = [&](int i) { return 1.0f + static_cast<float>(i % 7) / 1024; };
  const auto wide = RunDot(DotText({kSize, kSize, kSize, "f16", "f16", "f32"}, ""), x, x,
                           std::vector<float>(kSize * kSize, 0.5f));
  const auto narrow = RunDot(DotText({kSize, kSize, kSize, "f16", "f16", "f16"}, ""), x, x,
                             std::vector<uint16_t>(kSize * kSize));
  for (int i = 0; i < kSize; ++i) {
    for (int j = 0; j < kSize; ++j) {
      float sum = 0.5f;
      float plain = 0;
      for (int l = 0; l < kSize; ++l) {
        const float product = value(i * kSize + l) * value(l * kSize + j);
        sum += product;
        plain += product;
      }
      EXPECT_EQ(wide[i * kSize + j], sum);
      // Between 16 and 32 a half's last place is 1 / 64.
      const float half = std::nearbyint(plain * 64) / 64;
      EXPECT_EQ(narrow[i * kSize + j], 0x4C00 + static_cast<int>((half - 16) * 64));
    }
  }
}

TEST(DotTest, IntegersAreExact) {
  constexpr int kSize = 32;
  std::mt19937 random(6);
  std::vector<int8_t> x(kSize * kSize);
  std::vector<int8_t> y(kSize * kSize);
  for (int8_t& value : x) value = static_cast<int8_t>(random());
  for (int8_t& value : y) value = static_cast<int8_t>(random());
  const auto result = RunDot(DotText({kSize, kSize, kSize, "i8", "i8", "i32"}, ""), x, y,
                             std::vector<int32_t>(kSize * kSize, 3));
  for (int i = 0; i < kSize; ++i) {
    for (int j = 0; j < kSize; ++j) {
      int32_t sum = 3;
      for (int l = 0; l < kSize; ++l) sum += x[i * kSize + l] * y[l * kSize + j];
      EXPECT_EQ(result[i * kSize + j], sum);
    }
  }
}

TEST(DotTest, EightBitFloats) {
  constexpr int kSize = 16;
  // 0x38 is 1 in f8E4M3FN, and each of the next seven numbers is larger by 1 / 8.
  std::vector<uint8_t> x(kSize * kSize);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>(0x38 + i % 5);
  const auto value = [](int i) { return 1.0f + static_cast<float>(i % 5) / 8; };
  const auto result = RunDot(DotText({kSize, kSize, kSize, "f8E4M3FN", "f8E4M3FN", "f32"}, ""), x,
                             x, std::vector<float>(kSize * kSize));
  for (int i = 0; i < kSize; ++i) {
    for (int j = 0; j < kSize; ++j) {
      float sum = 0;
      for (int l = 0; l < kSize; ++l) sum += value(i * kSize + l) * value(l * kSize + j);
      EXPECT_EQ(result[i * kSize + j], sum);
    }
  }
}

}  // namespace
}  // namespace tritonrl::ttir
