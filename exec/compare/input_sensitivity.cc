#include "exec/compare/input_sensitivity.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <type_traits>

#include "exec/compare/tensor_layout.h"

namespace tritonrl {
namespace {

// A smaller variation may be rounding alone: a mean of normalised numbers is zero except for
// rounding.
constexpr double kMinVariation = 1e-4;
constexpr double kMinPart = 0.1;
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
  error += more.error;
}

double InputSensitivity::VariationPerElement() const {
  return elements == 0 ? 0 : std::sqrt(variation / static_cast<double>(elements));
}

double InputSensitivity::ErrorPerElement() const {
  return elements == 0 ? 0 : std::sqrt(error / static_cast<double>(elements));
}

bool InputSensitivity::IsNoBetterThanConstant() const {
  return VariationPerElement() > kMinVariation && error > kMinPart * variation;
}

int64_t SensitivitySampleStep(int64_t elements) {
  return std::max<int64_t>(1, (elements + kSensitivitySamples - 1) / kSensitivitySamples);
}

InputSensitivity MeasureInputSensitivity(const Leaf& leaf, const char* first, const char* want,
                                         const char* got) {
  InputSensitivity sums;
  if (!SupportsSensitivityCheck(leaf.type)) return sums;
  const double rounding = SensitivityRoundingShare(leaf.type);
  const int64_t step = SensitivitySampleStep(leaf.elements);
  WithElementReader(leaf.type, [&](auto type) {
    using Type = decltype(type);
    if constexpr (std::is_same_v<typename Type::Wide, double>) {
      for (int64_t i = 0; i < leaf.elements; i += step) {
        const double before = Type::Get(first + i * Type::kBytes);
        const double wanted = Type::Get(want + i * Type::kBytes);
        const double there = Type::Get(got + i * Type::kBytes);
        if (!std::isfinite(before) || !std::isfinite(wanted) || !std::isfinite(there)) continue;
        const double error = std::max(0.0, std::abs(there - wanted) - rounding * std::abs(wanted));
        sums.variation += (wanted - before) * (wanted - before) / 2;
        sums.error += error * error;
        ++sums.elements;
      }
    }
  });
  return sums;
}

}  // namespace tritonrl
