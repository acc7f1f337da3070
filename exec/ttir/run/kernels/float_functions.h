// Float arithmetic on one element. Each operation rounds once, to nearest even; subnormal numbers
// are kept.
#ifndef TRITONRL_EXEC_TTIR_RUN_KERNELS_FLOAT_FUNCTIONS_H_
#define TRITONRL_EXEC_TTIR_RUN_KERNELS_FLOAT_FUNCTIONS_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "exec/ttir/run/kernels/kernels.h"

namespace tritonrl::ttir::TRITONRL_TTIR_SET {
namespace {

template <typename T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
template <typename T>
constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

struct Add {
  template <typename T>
  static T Of(T a, T b) {
    return a + b;
  }
};
struct Subtract {
  template <typename T>
  static T Of(T a, T b) {
    return a - b;
  }
};
struct Multiply {
  template <typename T>
  static T Of(T a, T b) {
    return a * b;
  }
};
struct Divide {
  template <typename T>
  static T Of(T a, T b) {
    return a / b;
  }
};
struct Remainder {
  template <typename T>
  static T Of(T a, T b) {
    return std::fmod(a, b);
  }
};

// Equal operands differ in the sign of zero at most: +0 is the larger one, as for PTX's max.
template <typename T>
T BitsAnd(T a, T b) {
  return std::bit_cast<T>(std::bit_cast<Bits<T>>(a) & std::bit_cast<Bits<T>>(b));
}
template <typename T>
T BitsOr(T a, T b) {
  return std::bit_cast<T>(std::bit_cast<Bits<T>>(a) | std::bit_cast<Bits<T>>(b));
}
struct MaximumNumber {  // of a NaN and a number it is the number
  template <typename T>
  static T Of(T a, T b) {
    const T larger = a > b ? a : b;
    const T ordered = a == b ? BitsAnd(a, b) : larger;
    return b != b ? a : ordered;
  }
};
struct MinimumNumber {
  template <typename T>
  static T Of(T a, T b) {
    const T smaller = a < b ? a : b;
    const T ordered = a == b ? BitsOr(a, b) : smaller;
    return b != b ? a : ordered;
  }
};
struct Maximum {  // a NaN wins
  template <typename T>
  static T Of(T a, T b) {
    const T number = MaximumNumber::Of(a, b);
    return (a != a) | (b != b) ? kNan<T> : number;
  }
};
struct Minimum {
  template <typename T>
  static T Of(T a, T b) {
    const T number = MinimumNumber::Of(a, b);
    return (a != a) | (b != b) ? kNan<T> : number;
  }
};

struct FusedMultiplyAdd {
  template <typename T>
  static T Of(T a, T b, T c) {
    return std::fma(a, b, c);
  }
};
struct Clamp {
  template <typename T>
  static T Of(T x, T low, T high) {
    return MinimumNumber::Of(MaximumNumber::Of(x, low), high);
  }
};
struct ClampPropagatingNan {
  template <typename T>
  static T Of(T x, T low, T high) {
    const T clamped = Clamp::Of(x, low, high);
    return x != x ? kNan<T> : clamped;
  }
};
struct PowerOfInteger {
  template <typename T>
  static T Of(T base, int64_t exponent) {
    T result = 1;
    const uint64_t magnitude = exponent < 0 ? uint64_t{0} - static_cast<uint64_t>(exponent)
                                            : static_cast<uint64_t>(exponent);
    for (uint64_t rest = magnitude; rest != 0; rest >>= 1) {
      if ((rest & 1) != 0) result *= base;
      base *= base;
    }
    return exponent < 0 ? T{1} / result : result;
  }
};

struct Negate {
  template <typename T>
  static T Of(T a) {
    return -a;
  }
};
struct Absolute {
  template <typename T>
  static T Of(T a) {
    return std::fabs(a);
  }
};
struct SquareRoot {
  template <typename T>
  static T Of(T a) {
    return std::sqrt(a);
  }
};
struct Floor {
  template <typename T>
  static T Of(T a) {
    return std::floor(a);
  }
};
struct Ceil {
  template <typename T>
  static T Of(T a) {
    return std::ceil(a);
  }
};
struct Truncate {
  template <typename T>
  static T Of(T a) {
    return std::trunc(a);
  }
};
struct RoundEven {
  template <typename T>
  static T Of(T a) {
    return std::rint(a);
  }
};
struct RoundAway {
  template <typename T>
  static T Of(T a) {
    return std::round(a);
  }
};

}  // namespace
}  // namespace tritonrl::ttir::TRITONRL_TTIR_SET

#endif  // TRITONRL_EXEC_TTIR_RUN_KERNELS_FLOAT_FUNCTIONS_H_
