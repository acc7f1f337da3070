#include "exec/compare/input_sensitivity.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tritonrl {
namespace {

constexpr int kTrials = 5;

using Floats = std::vector<float>;

Leaf LeafOf(const std::string& dtype, int64_t elements) {
  Leaf leaf;
  leaf.kind = Leaf::Kind::kTensor;
  leaf.dtype = dtype;
  leaf.type = *ParseDType(dtype);
  leaf.elements = elements;
  return leaf;
}

const char* Bytes(const Floats& v) { return reinterpret_cast<const char*>(v.data()); }

// The sums of one output over trials: `want` and `got` hold its elements by trial.
InputSensitivity Follow(const std::vector<Floats>& want, const std::vector<Floats>& got) {
  const Leaf leaf = LeafOf("float32", static_cast<int64_t>(want[0].size()));
  const FirstElements first = {SampleElements(leaf, Bytes(want[0])),
                               SampleElements(leaf, Bytes(got[0]))};
  InputSensitivity sums;
  for (size_t trial = 1; trial < want.size(); ++trial) {
    sums.Add(MeasureInputSensitivity(leaf, first, Bytes(want[trial]), Bytes(got[trial])));
  }
  return sums;
}

// Expected elements by trial: normal numbers around `mean`.
std::vector<Floats> Normal(int elements, double mean, double deviation) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal(mean, deviation);
  std::vector<Floats> trials(kTrials, Floats(elements));
  for (Floats& trial : trials) {
    for (float& x : trial) x = static_cast<float>(normal(random));
  }
  return trials;
}

// The sums for an output that is `guess`(expected, trial, element) of the expected elements.
InputSensitivity Guessed(const std::vector<Floats>& want,
                         const std::function<double(float, int, size_t)>& guess) {
  std::vector<Floats> got = want;
  for (int trial = 0; trial < static_cast<int>(got.size()); ++trial) {
    for (size_t i = 0; i < got[trial].size(); ++i) {
      got[trial][i] = static_cast<float>(guess(want[trial][i], trial, i));
    }
  }
  return Follow(want, got);
}

// Sums over an output with `rows` elements. Each expected element is the mean of `columns` uniform
// numbers, and the candidate's is `guess` of the same numbers.
template <typename Guess>
InputSensitivity Means(int rows, int columns, const Guess& guess) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<Floats> want(kTrials), got(kTrials);
  for (int trial = 0; trial < kTrials; ++trial) {
    for (int row = 0; row < rows; ++row) {
      std::vector<double> numbers(columns);
      double sum = 0;
      for (double& number : numbers) sum += number = uniform(random);
      want[trial].push_back(static_cast<float>(sum / columns));
      got[trial].push_back(static_cast<float>(guess(numbers)));
    }
  }
  return Follow(want, got);
}

double Mean(const std::vector<double>& numbers, size_t step, size_t until) {
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < until; i += step, ++count) sum += numbers[i];
  return sum / static_cast<double>(count);
}

// The lower 13 bits dropped: what tensor cores make of float32 operands.
float CutToTf32(float x) { return std::bit_cast<float>(std::bit_cast<uint32_t>(x) & ~0x1fffu); }

// Elements of a matmul of uniform numbers over `k`, exact and with cut operands, by trial.
std::pair<std::vector<Floats>, std::vector<Floats>> Products(int elements, int k) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<Floats> exact(kTrials), cut(kTrials);
  for (int trial = 0; trial < kTrials; ++trial) {
    for (int i = 0; i < elements; ++i) {
      double sum = 0, cut_sum = 0;
      for (int j = 0; j < k; ++j) {
        const float a = uniform(random), b = uniform(random);
        sum += static_cast<double>(a) * b;
        cut_sum += static_cast<double>(CutToTf32(a)) * CutToTf32(b);
      }
      exact[trial].push_back(static_cast<float>(sum));
      cut[trial].push_back(static_cast<float>(cut_sum));
    }
  }
  return {exact, cut};
}

TEST(InputSensitivity, AConstantFollowsNothing) {
  const auto constant = [](const std::vector<double>&) { return 0.5; };
  EXPECT_TRUE(Means(8, 4096, constant).IsNoBetterThanConstant());
  EXPECT_TRUE(Means(8, 16384, constant).IsNoBetterThanConstant());
  EXPECT_NEAR(Means(8, 4096, constant).VariationPerElement(), 0.0045, 0.002);
  EXPECT_DOUBLE_EQ(Means(8, 4096, constant).ErrorPerElement(),
                   Means(8, 4096, constant).VariationPerElement());
}

TEST(InputSensitivity, AMeanOfHalfTheNumbersIsNoMeanOfAll) {
  EXPECT_TRUE(
      Means(8, 4096, [](const auto& x) { return Mean(x, 2, x.size()); }).IsNoBetterThanConstant());
  EXPECT_TRUE(Means(8, 4096, [](const auto& x) {
                return Mean(x, 1, x.size() / 2);
              }).IsNoBetterThanConstant());
}

TEST(InputSensitivity, RightResultsFollow) {
  EXPECT_FALSE(
      Means(8, 4096, [](const auto& x) { return Mean(x, 1, x.size()); }).IsNoBetterThanConstant());
  // An error of the size of half-precision rounding.
  EXPECT_FALSE(Means(8, 4096, [](const auto& x) {
                 return Mean(x, 1, x.size()) * (1 + 0x1p-11);
               }).IsNoBetterThanConstant());
}

TEST(InputSensitivity, AMatmulWithTheBiasOfTf32Follows) {
  for (const auto& [elements, k] : {std::pair(1, 524288), {16, 524288}, {64, 65536}}) {
    const auto [exact, cut] = Products(elements, k);
    const InputSensitivity sums = Follow(exact, cut);
    EXPECT_FALSE(sums.IsNoBetterThanConstant()) << elements << " elements over " << k;
    EXPECT_LT(sums.ErrorPerElement(), 0.01 * sums.VariationPerElement());
    if (k == 524288) {  // by its values it is as far off as it varies
      double error = 0;
      for (int i = 0; i < elements; ++i) error += (exact[1][i] - cut[1][i]) / elements;
      EXPECT_GT(error, 0.3 * sums.VariationPerElement());
    }
    if (elements == 1) continue;  // rounding to half precision could hide the variation of one
    const double mean = 0.25 * k;
    EXPECT_TRUE(Guessed(exact, [&](float, int, size_t) { return mean; }).IsNoBetterThanConstant());
    EXPECT_TRUE(Guessed(exact, [first = exact[0]](float, int, size_t i) {
                  return first[i];
                }).IsNoBetterThanConstant());
  }
}

TEST(InputSensitivity, WhatIsHardCodedDoesNotFollow) {
  for (const int elements : {1, 2, 64, 4096}) {
    const auto want = Normal(elements, 100, 0.5);
    SCOPED_TRACE(elements);
    std::mt19937 random(5);
    std::normal_distribution<double> noise(0, 0.5);
    const auto is_constant = [&](const std::function<double(float, int, size_t)>& guess) {
      return Guessed(want, guess).IsNoBetterThanConstant();
    };
    EXPECT_TRUE(is_constant([](float, int, size_t) { return 100; }));
    EXPECT_TRUE(is_constant([](float, int, size_t) { return -7e5; }));
    EXPECT_TRUE(is_constant([](float, int, size_t i) { return 100 + std::sin(i); }));
    EXPECT_TRUE(is_constant([&](float, int, size_t) { return 100 + noise(random); }));
    EXPECT_TRUE(is_constant([&](float, int, size_t) { return 100 + 0.01 * noise(random); }));
    EXPECT_TRUE(is_constant([](float x, int, size_t) { return 200 - x; }));
    EXPECT_TRUE(is_constant([](float x, int, size_t) { return 100 + (x - 100) / 2; }));
    // The right result in the first call only, and in all but the first.
    EXPECT_TRUE(is_constant([](float x, int trial, size_t) { return trial == 0 ? x : 100; }));
    EXPECT_TRUE(is_constant([&](float, int, size_t i) { return want[0][i]; }));
    // What the right result is, with a bias, a scale or small noise.
    EXPECT_FALSE(is_constant([](float x, int, size_t) { return x; }));
    EXPECT_FALSE(is_constant([](float x, int, size_t) { return x + 0.9; }));
    EXPECT_FALSE(is_constant([](float x, int, size_t) { return x * 1.009; }));
    EXPECT_FALSE(is_constant([&](float x, int, size_t) { return x + 0.1 * noise(random); }));
  }
}

TEST(InputSensitivity, AMeanOfTheOutputsDoesNotFollow) {
  const auto want = Normal(64, 100, 0.1);
  EXPECT_TRUE(Guessed(want, [&](float, int trial, size_t) {
                double sum = 0;
                for (const float x : want[trial]) sum += x;
                return sum / 64;
              }).IsNoBetterThanConstant());
}

// Rounds to half precision's 11 bits.
double ToHalf(double x) {
  const double unit = std::ldexp(1.0, std::ilogb(x) - 10);
  return std::round(x / unit) * unit;
}

TEST(InputSensitivity, RoundingIsNoVariation) {
  // A mean of normalised numbers is zero except for rounding, which differs by implementation.
  EXPECT_FALSE(Follow({{1e-8F, -2e-8F}, {-3e-8F, 1e-8F}}, {{4e-8F, 0}, {2e-8F, 4e-8F}})
                   .IsNoBetterThanConstant());
  EXPECT_FALSE(Follow({{0, 0}, {0, 0}}, {{0, 0}, {0, 0}}).IsNoBetterThanConstant());
  // Results in half precision that vary by little more than one of its steps.
  for (const int elements : {1, 64, 4096}) {
    const auto want = Normal(elements, 100, 0.05);
    EXPECT_FALSE(
        Guessed(want, [](float x, int, size_t) { return ToHalf(x); }).IsNoBetterThanConstant());
  }
}

TEST(InputSensitivity, WhatIsNotFiniteOrNotFloatingIsLeftOut) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const InputSensitivity sums =
      Follow({{1, 2, 3, 4}, {kInf, 4, 5, 6}}, {{1, 2, 3, kInf}, {kInf, 4, kInf, 6}});
  EXPECT_EQ(sums.elements, 1);
  EXPECT_EQ(sums.ErrorPerElement(), 0);
  const std::vector<int32_t> numbers = {1, 2};
  const char* bytes = reinterpret_cast<const char*>(numbers.data());
  EXPECT_TRUE(SampleElements(LeafOf("int32", 2), bytes).empty());
  EXPECT_EQ(MeasureInputSensitivity(LeafOf("int32", 2), {}, bytes, bytes).elements, 0);
  const Floats x = {1, 2};
  EXPECT_EQ(MeasureInputSensitivity(LeafOf("float32", 2), {}, Bytes(x), Bytes(x)).elements, 0);
}

TEST(InputSensitivity, LargeTensorsAreSampled) {
  EXPECT_EQ(SensitivitySampleStep(1), 1);
  EXPECT_EQ(SensitivitySampleStep(kSensitivitySamples), 1);
  EXPECT_EQ(SensitivitySampleStep(kSensitivitySamples + 1), 2);
  const Floats numbers(3 * kSensitivitySamples, 1.0F);
  EXPECT_EQ(Follow({numbers, numbers}, {numbers, numbers}).elements, kSensitivitySamples);
}

}  // namespace
}  // namespace tritonrl
