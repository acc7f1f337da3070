#include "exec/compare/input_sensitivity.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

namespace tritonrl {
namespace {

constexpr int kTrials = 5;

Leaf LeafOf(const std::string& dtype, int64_t elements) {
  Leaf leaf;
  leaf.kind = Leaf::Kind::kTensor;
  leaf.dtype = dtype;
  leaf.type = *ParseDType(dtype);
  leaf.elements = elements;
  return leaf;
}

InputSensitivity Follow(const std::vector<float>& first, const std::vector<float>& want,
                        const std::vector<float>& got) {
  const auto bytes = [](const std::vector<float>& v) {
    return reinterpret_cast<const char*>(v.data());
  };
  return MeasureInputSensitivity(LeafOf("float32", static_cast<int64_t>(want.size())), bytes(first),
                                 bytes(want), bytes(got));
}

// Sums over kTrials trials of an output with `rows` elements. Each expected element is the mean of
// `columns` uniform numbers, and the candidate's is `guess` of the same numbers.
template <typename Guess>
InputSensitivity Means(int rows, int columns, const Guess& guess) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<float> first;
  InputSensitivity sums;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<float> want, got;
    for (int row = 0; row < rows; ++row) {
      std::vector<double> numbers(columns);
      double sum = 0;
      for (double& number : numbers) sum += number = uniform(random);
      want.push_back(static_cast<float>(sum / columns));
      got.push_back(static_cast<float>(guess(numbers)));
    }
    if (trial == 0) first = want;
    if (trial > 0) sums.Add(Follow(first, want, got));
  }
  return sums;
}

double Mean(const std::vector<double>& numbers, size_t step, size_t until) {
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < until; i += step, ++count) sum += numbers[i];
  return sum / static_cast<double>(count);
}

TEST(InputSensitivity, AConstantFollowsNothing) {
  const auto constant = [](const std::vector<double>&) { return 0.5; };
  EXPECT_TRUE(Means(8, 4096, constant).IsNoBetterThanConstant());
  EXPECT_TRUE(Means(8, 16384, constant).IsNoBetterThanConstant());
  EXPECT_NEAR(Means(8, 4096, constant).VariationPerElement(), 0.0045, 0.002);
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

TEST(InputSensitivity, RoundingIsNoVariation) {
  // A mean of normalised numbers is zero except for rounding, which differs by implementation.
  EXPECT_FALSE(Follow({1e-8F, -2e-8F}, {-3e-8F, 1e-8F}, {2e-8F, 4e-8F}).IsNoBetterThanConstant());
  EXPECT_FALSE(Follow({0, 0}, {0, 0}, {0, 0}).IsNoBetterThanConstant());
}

TEST(InputSensitivity, WhatIsNotFiniteOrNotFloatingIsLeftOut) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const InputSensitivity sums = Follow({1, 2, 3}, {kInf, 4, 5}, {kInf, 4, kInf});
  EXPECT_EQ(sums.elements, 1);
  EXPECT_EQ(sums.error, 0);
  const std::vector<int32_t> numbers = {1, 2};
  const char* bytes = reinterpret_cast<const char*>(numbers.data());
  EXPECT_EQ(MeasureInputSensitivity(LeafOf("int32", 2), bytes, bytes, bytes).elements, 0);
}

TEST(InputSensitivity, LargeTensorsAreSampled) {
  EXPECT_EQ(SensitivitySampleStep(1), 1);
  EXPECT_EQ(SensitivitySampleStep(kSensitivitySamples), 1);
  EXPECT_EQ(SensitivitySampleStep(kSensitivitySamples + 1), 2);
  const std::vector<float> numbers(3 * kSensitivitySamples, 1.0F);
  EXPECT_EQ(Follow(numbers, numbers, numbers).elements, kSensitivitySamples);
}

}  // namespace
}  // namespace tritonrl
