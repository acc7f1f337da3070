// Integer arithmetic on one element: it wraps around. Where LLVM leaves a result open it is that of
// the PTX instruction: a shift by the width or more gives 0 or the sign, x / 0 has all bits set,
// x % 0 is x. The smallest number divided by -1 is itself.
#ifndef TRITONRL_EXEC_TTIR_RUN_KERNELS_INTEGER_FUNCTIONS_H_
#define TRITONRL_EXEC_TTIR_RUN_KERNELS_INTEGER_FUNCTIONS_H_

#include <bit>
#include <cstdint>
#include <type_traits>

#include "exec/ttir/run/kernels/kernels.h"

namespace tritonrl::ttir::TRITONRL_TTIR_SET {
namespace {

template <typename T>
using Unsigned = std::make_unsigned_t<T>;
// Wide enough that the compiler's promotion to int cannot overflow.
template <typename T>
using Wrapping = std::conditional_t<sizeof(T) < 4, uint32_t, Unsigned<T>>;
template <typename T>
constexpr int kBits = 8 * sizeof(T);

struct Add {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct Subtract {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};
struct Multiply {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};

// A double's quotient of 32-bit integers, cut off, is exact: the next integer is at least 2^-32 of
// it away. Unlike the division of integers it is vectorised.
struct Divide {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (sizeof(T) <= 4) {
      const double quotient = static_cast<double>(a) / static_cast<double>(b == 0 ? T{1} : b);
      const double wrapped = quotient >= 2147483648.0 ? -2147483648.0 : quotient;
      const auto result = static_cast<T>(static_cast<int32_t>(wrapped));
      return b == 0 ? T{-1} : result;
    } else {
      if (b == 0) return T{-1};
      return b == -1 ? Subtract::Of(T{0}, a) : static_cast<T>(a / b);
    }
  }
};
struct Remainder {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (sizeof(T) <= 4) {
      const T quotient = b == 0 ? T{0} : Divide::Of(a, b);
      return Subtract::Of(a, Multiply::Of(quotient, b));
    } else {
      if (b == 0) return a;
      return b == -1 ? T{0} : static_cast<T>(a % b);
    }
  }
};
struct DivideUnsigned {
  template <typename T>
  static T Of(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    return static_cast<T>(static_cast<Unsigned<T>>(a) / static_cast<Unsigned<T>>(b));
  }
};
struct RemainderUnsigned {
  template <typename T>
  static T Of(T a, T b) {
    if (b == 0) return a;
    return static_cast<T>(static_cast<Unsigned<T>>(a) % static_cast<Unsigned<T>>(b));
  }
};
struct CeilDivide {
  template <typename T>
  static T Of(T a, T b) {
    const T rest = Remainder::Of(a, b);
    const bool up = b != 0 && rest != 0 && (rest < 0) == (b < 0);
    return Add::Of(Divide::Of(a, b), static_cast<T>(up ? 1 : 0));
  }
};
struct FloorDivide {
  template <typename T>
  static T Of(T a, T b) {
    const T rest = Remainder::Of(a, b);
    const bool down = b != 0 && rest != 0 && (rest < 0) != (b < 0);
    return Subtract::Of(Divide::Of(a, b), static_cast<T>(down ? 1 : 0));
  }
};
struct CeilDivideUnsigned {
  template <typename T>
  static T Of(T a, T b) {
    const bool up = b != 0 && RemainderUnsigned::Of(a, b) != 0;
    return Add::Of(DivideUnsigned::Of(a, b), static_cast<T>(up ? 1 : 0));
  }
};

struct And {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct ShiftLeft {
  template <typename T>
  static T Of(T a, T b) {
    const auto by = static_cast<Unsigned<T>>(b);
    const auto shifted = static_cast<Wrapping<T>>(a) << (by & (kBits<T> - 1));
    return by < kBits<T> ? static_cast<T>(shifted) : T{0};
  }
};
struct ShiftRight {
  template <typename T>
  static T Of(T a, T b) {
    const auto by = static_cast<Unsigned<T>>(b);
    return static_cast<T>(a >> (by < kBits<T> ? by : Unsigned<T>{kBits<T> - 1}));
  }
};
struct ShiftRightUnsigned {
  template <typename T>
  static T Of(T a, T b) {
    const auto by = static_cast<Unsigned<T>>(b);
    const auto shifted = static_cast<Unsigned<T>>(a) >> (by & (kBits<T> - 1));
    return by < kBits<T> ? static_cast<T>(shifted) : T{0};
  }
};
struct Maximum {
  template <typename T>
  static T Of(T a, T b) {
    return a > b ? a : b;
  }
};
struct Minimum {
  template <typename T>
  static T Of(T a, T b) {
    return a < b ? a : b;
  }
};
struct MaximumUnsigned {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<Unsigned<T>>(a) > static_cast<Unsigned<T>>(b) ? a : b;
  }
};
struct MinimumUnsigned {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<Unsigned<T>>(a) < static_cast<Unsigned<T>>(b) ? a : b;
  }
};
struct HighProduct {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (sizeof(T) == 8) {
      return static_cast<T>((static_cast<__int128>(a) * b) >> 64);
    } else {
      return static_cast<T>((int64_t{a} * int64_t{b}) >> kBits<T>);
    }
  }
};
struct HighProductUnsigned {
  template <typename T>
  static T Of(T a, T b) {
    const auto x = static_cast<Unsigned<T>>(a);
    const auto y = static_cast<Unsigned<T>>(b);
    if constexpr (sizeof(T) == 8) {
      return static_cast<T>((static_cast<unsigned __int128>(x) * y) >> 64);
    } else {
      return static_cast<T>((uint64_t{x} * uint64_t{y}) >> kBits<T>);
    }
  }
};
struct Power {
  template <typename T>
  static T Of(T base, T exponent) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if (base == -1) return (exponent & 1) != 0 ? T{-1} : T{1};
      return 0;
    }
    T result = 1;
    for (auto rest = static_cast<Unsigned<T>>(exponent); rest != 0;
         rest = static_cast<Unsigned<T>>(rest >> 1)) {
      if ((rest & 1) != 0) result = Multiply::Of(result, base);
      base = Multiply::Of(base, base);
    }
    return result;
  }
};

struct Absolute {
  template <typename T>
  static T Of(T a) {
    return a < 0 ? Subtract::Of(T{0}, a) : a;
  }
};
struct LeadingZeros {
  template <typename T>
  static T Of(T a) {
    return static_cast<T>(std::countl_zero(static_cast<Unsigned<T>>(a)));
  }
};
struct TrailingZeros {
  template <typename T>
  static T Of(T a) {
    return static_cast<T>(std::countr_zero(static_cast<Unsigned<T>>(a)));
  }
};
struct Population {
  template <typename T>
  static T Of(T a) {
    return static_cast<T>(std::popcount(static_cast<Unsigned<T>>(a)));
  }
};

}  // namespace
}  // namespace tritonrl::ttir::TRITONRL_TTIR_SET

#endif  // TRITONRL_EXEC_TTIR_RUN_KERNELS_INTEGER_FUNCTIONS_H_
