// Conversions between integers and floats.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "exec/ttir/run/kernels/loops.h"
#include "exec/ttir/run/kernels/sets.h"

namespace tritonrl::ttir::TRITONRL_TTIR_SET {
namespace {

// Integers of another width; `T` carries the sign.
template <typename R>
struct Widen {
  template <typename T>
  static R Of(T a) {
    return static_cast<R>(a);
  }
};
struct NegateBool {  // one bit with a sign is 0 or -1
  template <typename R>
  struct To {
    static R Of(uint8_t a) { return static_cast<R>(-static_cast<int>(a)); }
  };
};
struct LowBit {
  template <typename T>
  static uint8_t Of(T a) {
    return static_cast<uint8_t>(a & 1);
  }
};

// Towards zero, but an inexact result gets an odd last bit. A later rounding to a format with at
// most 22 bits of mantissa then gives what a single rounding of the exact number would give.
struct RoundToOdd {
  static float Of(double x) {
    const auto nearest = static_cast<float>(x);
    const double back = nearest;
    uint32_t bits = std::bit_cast<uint32_t>(nearest);
    if (back == x || x != x) return nearest;
    if (std::fabs(back) > std::fabs(x)) --bits;
    return std::bit_cast<float>(bits | 1);
  }
  // 64 bits do not fit a double: the bits that fall off go into the last one that stays.
  template <typename T>
  static float Of(T x) requires std::is_integral_v<T> {
    if constexpr (sizeof(T) == 8) {
      const bool negative = std::is_signed_v<T> && x < 0;
      uint64_t magnitude =
          negative ? uint64_t{0} - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
      if ((magnitude >> 53) != 0) {
        magnitude = (magnitude & ~uint64_t{0xFFF}) | ((magnitude & 0xFFF) != 0 ? 0x1000 : 0);
      }
      const double wide = static_cast<double>(magnitude);
      return Of(negative ? -wide : wide);
    } else {
      return Of(static_cast<double>(x));
    }
  }
};

// An infinity that comes of a finite number steps back to the largest number.
struct NarrowTowardZeroOf {
  static float Of(double x) {
    const auto nearest = static_cast<float>(x);
    const bool beyond = std::fabs(static_cast<double>(nearest)) > std::fabs(x);
    return std::bit_cast<float>(std::bit_cast<uint32_t>(nearest) - (beyond ? 1 : 0));
  }
};

// Towards zero; too large numbers become the largest integer, NaN 0, as cvt.rzi does.
template <typename R>
struct Saturate {
  template <typename T>
  static R Of(T x) {
    using Limits = std::numeric_limits<R>;
    // Powers of two, and so exact.
    constexpr R kHalf = Limits::max() / 2 + 1;
    constexpr T kEnd = static_cast<T>(kHalf) * T{2};
    constexpr T kBegin = static_cast<T>(Limits::min());
    const bool inside = (x >= kBegin) & (x < kEnd);
    const R converted = static_cast<R>(inside ? x : T{0});
    const R outside = x >= kEnd ? Limits::max() : (x < kBegin ? Limits::min() : R{0});
    return inside ? converted : outside;
  }
};
struct SaturateBool {
  template <typename T>
  static uint8_t Of(T x) {
    return x >= T{1};
  }
};
struct SaturateSignedBool {
  template <typename T>
  static uint8_t Of(T x) {
    return x <= T{-1};
  }
};

// Calls `use` with a value of the lane's type. A template's switch over types, in one place.
template <typename Result, typename Use>
Result ForInteger(Lane lane, bool is_signed, Use use) {
  switch (lane) {
    case Lane::kBool:
      return use(uint8_t{});
    case Lane::kI8:
      return is_signed ? use(int8_t{}) : use(uint8_t{});
    case Lane::kI16:
      return is_signed ? use(int16_t{}) : use(uint16_t{});
    case Lane::kI32:
      return is_signed ? use(int32_t{}) : use(uint32_t{});
    case Lane::kI64:
      return is_signed ? use(int64_t{}) : use(uint64_t{});
    default:
      return nullptr;
  }
}

}  // namespace

Unary FindWiden(Lane from, Lane to, bool is_signed) {
  return ForInteger<Unary>(from, is_signed, [&](auto source) -> Unary {
    using T = decltype(source);
    if (to == Lane::kBool) return UnaryLoop<uint8_t, T, LowBit>;
    return ForInteger<Unary>(to, true, [&](auto target) -> Unary {
      using R = decltype(target);
      if (from == Lane::kBool && is_signed) {
        return UnaryLoop<R, uint8_t, NegateBool::To<R>>;
      }
      return UnaryLoop<R, T, Widen<R>>;
    });
  });
}

Unary FindToFloat(Lane from, Lane to, bool is_signed) {
  const bool narrow = to == Lane::kF32;
  if (from == Lane::kF32) return narrow ? nullptr : UnaryLoop<double, float, Widen<double>>;
  if (from == Lane::kF64) return narrow ? UnaryLoop<float, double, Widen<float>> : nullptr;
  if (from == Lane::kBool && is_signed) {
    return narrow ? UnaryLoop<float, uint8_t, NegateBool::To<float>>
                  : UnaryLoop<double, uint8_t, NegateBool::To<double>>;
  }
  return ForInteger<Unary>(from, is_signed, [&](auto source) -> Unary {
    using T = decltype(source);
    return narrow ? UnaryLoop<float, T, Widen<float>> : UnaryLoop<double, T, Widen<double>>;
  });
}

Unary FindToOddFloat(Lane from, bool is_signed) {
  if (from == Lane::kF64) return UnaryLoop<float, double, RoundToOdd>;
  if (from == Lane::kF32) return nullptr;
  if (from == Lane::kBool && is_signed) return UnaryLoop<float, uint8_t, NegateBool::To<float>>;
  return ForInteger<Unary>(from, is_signed, [&](auto source) -> Unary {
    return UnaryLoop<float, decltype(source), RoundToOdd>;
  });
}

void NarrowTowardZero(void* out, const void* a, int64_t count) {
  UnaryLoop<float, double, NarrowTowardZeroOf>(out, a, count);
}

Unary FindToInteger(Lane from, Lane to, bool is_signed) {
  const bool narrow = from == Lane::kF32;
  if (to == Lane::kBool) {
    if (is_signed) {
      return narrow ? UnaryLoop<uint8_t, float, SaturateSignedBool>
                    : UnaryLoop<uint8_t, double, SaturateSignedBool>;
    }
    return narrow ? UnaryLoop<uint8_t, float, SaturateBool>
                  : UnaryLoop<uint8_t, double, SaturateBool>;
  }
  return ForInteger<Unary>(to, is_signed, [&](auto target) -> Unary {
    using R = decltype(target);
    return narrow ? UnaryLoop<R, float, Saturate<R>> : UnaryLoop<R, double, Saturate<R>>;
  });
}

}  // namespace tritonrl::ttir::TRITONRL_TTIR_SET
