// Bits of f16, bf16 and fp8 numbers, one at a time. Every file has its own copy of these functions,
// as files are compiled for different instruction sets.
#ifndef TRITONRL_EXEC_TTIR_RUN_KERNELS_NUMBER_FORMATS_H_
#define TRITONRL_EXEC_TTIR_RUN_KERNELS_NUMBER_FORMATS_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "exec/ttir/types.h"

namespace tritonrl::ttir {
namespace {

struct SmallFormat {
  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  bool has_infinity = false;
  bool is_unsigned_zero = false;  // no -0; its bits are the only NaN
  bool saturates = false;         // too large numbers become the largest, as cvt.satfinite does

  constexpr uint32_t sign() const { return 1u << (exponent_bits + mantissa_bits); }
  constexpr uint32_t infinity() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }
  constexpr uint32_t nan() const {
    if (is_unsigned_zero) return sign();
    return has_infinity ? infinity() | (1u << (mantissa_bits - 1)) : sign() - 1;
  }
  constexpr uint32_t largest() const {
    if (has_infinity) return infinity() - 1;
    return is_unsigned_zero ? sign() - 1 : sign() - 2;
  }
};

constexpr SmallFormat SmallFormatOf(ScalarKind kind) {
  switch (kind) {
    case ScalarKind::kF8E4M3FN:
      return {4, 3, 7, false, false, true};
    case ScalarKind::kF8E5M2:
      return {5, 2, 15, true, false, true};
    case ScalarKind::kF8E4M3FNUZ:
      return {4, 3, 8, false, true, true};
    case ScalarKind::kF8E5M2FNUZ:
      return {5, 2, 16, false, true, true};
    case ScalarKind::kF8E4M3B11FNUZ:
      return {4, 3, 11, false, true, true};
    default:
      return {5, 10, 15, true, false, false};  // f16
  }
}

[[maybe_unused]] inline float DecodeSmallFloat(uint32_t bits, const SmallFormat& format) {
  const uint32_t magnitude = bits & (format.sign() - 1);
  const bool negative = (bits & format.sign()) != 0;
  const bool is_nan = format.is_unsigned_zero ? bits == format.sign()
                      : format.has_infinity   ? magnitude > format.infinity()
                                              : magnitude == format.nan();
  if (is_nan) return std::numeric_limits<float>::quiet_NaN();
  float value = std::numeric_limits<float>::infinity();
  if (!format.has_infinity || magnitude != format.infinity()) {
    const int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
    const uint32_t mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
    const uint32_t whole = exponent == 0 ? mantissa : mantissa | (1u << format.mantissa_bits);
    value = std::ldexp(static_cast<float>(whole),
                       (exponent == 0 ? 1 : exponent) - format.bias - format.mantissa_bits);
  }
  return negative ? -value : value;
}

[[maybe_unused]] inline uint32_t EncodeSmallFloat(float x, const SmallFormat& format,
                                                  bool toward_zero) {
  if (x != x) return format.nan();
  const uint32_t sign = std::signbit(x) ? format.sign() : 0;
  const uint32_t over = format.saturates || toward_zero ? format.largest() : format.infinity();
  const float magnitude = std::fabs(x);
  if (magnitude > std::numeric_limits<float>::max()) {
    // Truncation keeps an infinity; cvt.rn.satfinite does not.
    const bool keeps = format.has_infinity && (toward_zero || !format.saturates);
    return sign | (keeps ? format.infinity() : over);
  }
  int exponent = magnitude == 0 ? -200 : std::ilogb(magnitude);
  if (exponent < 1 - format.bias) exponent = 1 - format.bias;
  const float scaled = std::ldexp(magnitude, format.mantissa_bits - exponent);  // exact
  const auto units = static_cast<uint32_t>(toward_zero ? std::trunc(scaled) : std::rint(scaled));
  // A carry out of the mantissa goes into the exponent by the addition.
  const auto biased = static_cast<uint32_t>(exponent + format.bias - 1);
  uint32_t bits = (biased << format.mantissa_bits) + units;
  if (exponent > format.bias + 2 || bits > format.largest()) bits = over;
  if (format.is_unsigned_zero && bits == 0) return 0;
  return sign | bits;
}

// bf16 is the upper half of a float.
[[maybe_unused]] inline float RoundToBfloat(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000u;
  const uint32_t quiet = (bits | 0x00400000u) & 0xFFFF0000u;
  return std::bit_cast<float>(x != x ? quiet : rounded);
}
[[maybe_unused]] inline float TruncateToBfloat(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t quiet = bits | 0x00400000u;
  return std::bit_cast<float>((x != x ? quiet : bits) & 0xFFFF0000u);
}

}  // namespace
}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_KERNELS_NUMBER_FORMATS_H_
