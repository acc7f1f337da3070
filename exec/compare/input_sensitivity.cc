#include "exec/compare/input_sensitivity.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <type_traits>
#include <vector>

#include "exec/compare/tensor_layout.h"

namespace tritonrl {
namespace {

// A smaller variation may be rounding alone: a mean of normalised numbers is zero except for
// rounding.
constexpr double kMinVariation = 1e-4;
constexpr double kMostUnfollowed = 0.1;                            // of the variation
constexpr double kAllowedRounding = 2, kAllowedRoundingOfFew = 4;  // times what is expected
constexpr int64_t kFewTerms = 16;
constexpr double kHalfRounding = 0x1p-11;   // of half precision and of tf32
constexpr double kBFloatRounding = 0x1p-8;  // of bfloat16
constexpr double kSmallRounding = 0x1p-3;   // of 8-bit types

}  // namespace

double SensitivityRoundingShare(DType type) {
  switch (type) {
    case DType::kFloat8E4M3Fn:
    case DType::kFloat8E5M2:
      return kSmallRounding;
    case DType::kBFloat16:
      return kBFloatRounding;
    default:
      return kHalfRounding;
  }
}

bool SupportsSensitivityCheck(DType type) {
  switch (type) {
    case DType::kFloat8E4M3Fn:
    case DType::kFloat8E5M2:
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      return true;
    default:
      return false;
  }
}

void InputSensitivity::Add(const InputSensitivity& more) {
  elements += more.elements;
  variation += more.variation;
  covariance += more.covariance;
  own_variation += more.own_variation;
  rounding += more.rounding;
}

double InputSensitivity::VariationPerElement() const {
  return elements == 0 ? 0 : std::sqrt(variation / 2 / static_cast<double>(elements));
}

double InputSensitivity::ErrorPerElement() const {
  const double unfollowed = std::max(0.0, variation - 2 * covariance + own_variation);
  return elements == 0 ? 0 : std::sqrt(unfollowed / 2 / static_cast<double>(elements));
}

bool InputSensitivity::IsNoBetterThanConstant() const {
  if (!(VariationPerElement() > kMinVariation)) return false;
  const double allowed = elements < kFewTerms ? kAllowedRoundingOfFew : kAllowedRounding;
  const double unfollowed = variation - 2 * covariance + own_variation - allowed * rounding;
  return unfollowed > kMostUnfollowed * variation;
}

int64_t SensitivitySampleStep(int64_t elements) {
  return std::max<int64_t>(1, (elements + kSensitivitySamples - 1) / kSensitivitySamples);
}

std::vector<double> SampleElements(const Leaf& leaf, const char* bytes) {
  std::vector<double> elements;
  if (!SupportsSensitivityCheck(leaf.type)) return elements;
  const int64_t step = SensitivitySampleStep(leaf.elements);
  WithElementReader(leaf.type, [&](auto type) {
    using Type = decltype(type);
    if constexpr (std::is_same_v<typename Type::Wide, double>) {
      elements.reserve(leaf.elements / step + 1);
      for (int64_t i = 0; i < leaf.elements; i += step) {
        elements.push_back(Type::Get(bytes + i * Type::kBytes));
      }
    }
  });
  return elements;
}

InputSensitivity MeasureInputSensitivity(const Leaf& leaf, const FirstElements& first,
                                         const char* want, const char* got) {
  InputSensitivity sums;
  const std::vector<double> wanted = SampleElements(leaf, want), there = SampleElements(leaf, got);
  if (first.want.size() != wanted.size() || first.got.size() != wanted.size()) return sums;
  const double unit = SensitivityRoundingShare(leaf.type);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double change = wanted[i] - first.want[i];
    const double own = there[i] - first.got[i];
    if (!std::isfinite(change) || !std::isfinite(own)) continue;
    const double squares = wanted[i] * wanted[i] + first.want[i] * first.want[i];
    sums.variation += change * change;
    sums.covariance += change * own;
    sums.own_variation += own * own;
    sums.rounding += unit * unit * squares / 3;
    ++sums.elements;
  }
  return sums;
}

}  // namespace tritonrl
