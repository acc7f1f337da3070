// Float arithmetic, comparisons and tests.
#include <cmath>
#include <cstdint>
#include <limits>

#include "exec/ttir/run/kernels/float_functions.h"
#include "exec/ttir/run/kernels/loops.h"
#include "exec/ttir/run/kernels/sets.h"

namespace tritonrl::ttir::TRITONRL_TTIR_SET {
namespace {

// Bitwise operators keep the loops without branches.
#define TRITONRL_TTIR_COMPARISON(name, expression) \
  struct name {                                    \
    template <typename T>                          \
    static uint8_t Of(T a, T b) {                  \
      return expression;                           \
    }                                              \
  };
TRITONRL_TTIR_COMPARISON(OrderedEqual, a == b)
TRITONRL_TTIR_COMPARISON(OrderedGreater, a > b)
TRITONRL_TTIR_COMPARISON(OrderedGreaterEqual, a >= b)
TRITONRL_TTIR_COMPARISON(OrderedLess, a < b)
TRITONRL_TTIR_COMPARISON(OrderedLessEqual, a <= b)
TRITONRL_TTIR_COMPARISON(OrderedNotEqual, (a < b) | (a > b))
TRITONRL_TTIR_COMPARISON(Ordered, (a == a) & (b == b))
TRITONRL_TTIR_COMPARISON(UnorderedEqual, !((a < b) | (a > b)))
TRITONRL_TTIR_COMPARISON(UnorderedGreater, !(a <= b))
TRITONRL_TTIR_COMPARISON(UnorderedGreaterEqual, !(a < b))
TRITONRL_TTIR_COMPARISON(UnorderedLess, !(a >= b))
TRITONRL_TTIR_COMPARISON(UnorderedLessEqual, !(a > b))
TRITONRL_TTIR_COMPARISON(UnorderedNotEqual, a != b)
TRITONRL_TTIR_COMPARISON(Unordered, (a != a) | (b != b))
TRITONRL_TTIR_COMPARISON(Always, (a == a) | (b == b) | 1)
TRITONRL_TTIR_COMPARISON(Never, (a == a) & (b == b) & 0)
#undef TRITONRL_TTIR_COMPARISON

template <typename T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();
struct IsFinite {
  template <typename T>
  static uint8_t Of(T a) {
    return std::fabs(a) < kInfinity<T>;
  }
};
struct IsInfinite {
  template <typename T>
  static uint8_t Of(T a) {
    return std::fabs(a) == kInfinity<T>;
  }
};
struct IsNan {
  template <typename T>
  static uint8_t Of(T a) {
    return a != a;
  }
};
struct IsNormal {
  template <typename T>
  static uint8_t Of(T a) {
    const T magnitude = std::fabs(a);
    return (magnitude < kInfinity<T>)&(magnitude >= std::numeric_limits<T>::min());
  }
};

template <typename F>
Binary Same(Lane lane, int form) {
  return lane == Lane::kF32 ? BinaryOf<float, float, F>(form) : BinaryOf<double, double, F>(form);
}
template <typename F>
Binary Compare(Lane lane, int form) {
  return lane == Lane::kF32 ? BinaryOf<uint8_t, float, F>(form)
                            : BinaryOf<uint8_t, double, F>(form);
}
template <typename F>
Unary SameUnary(Lane lane) {
  return lane == Lane::kF32 ? UnaryLoop<float, float, F> : UnaryLoop<double, double, F>;
}
template <typename F>
Unary Test(Lane lane) {
  return lane == Lane::kF32 ? UnaryLoop<uint8_t, float, F> : UnaryLoop<uint8_t, double, F>;
}

template <typename T, typename N>
void PowerLoop(void* out, const void* a, const void* b, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    static_cast<T*>(out)[i] =
        PowerOfInteger::Of(static_cast<const T*>(a)[i], int64_t{static_cast<const N*>(b)[i]});
  }
}

template <typename T>
Binary PowerOf(Lane exponent) {
  switch (exponent) {
    case Lane::kI8:
      return PowerLoop<T, int8_t>;
    case Lane::kI16:
      return PowerLoop<T, int16_t>;
    case Lane::kI32:
      return PowerLoop<T, int32_t>;
    case Lane::kI64:
      return PowerLoop<T, int64_t>;
    default:
      return nullptr;
  }
}

}  // namespace

Unary FindFloatUnary(Opcode opcode, Lane lane) {
  switch (opcode) {
    case Opcode::kNegF:
      return SameUnary<Negate>(lane);
    case Opcode::kAbsF:
      return SameUnary<Absolute>(lane);
    case Opcode::kSqrt:
    case Opcode::kPreciseSqrt:
      return SameUnary<SquareRoot>(lane);
    case Opcode::kFloor:
      return SameUnary<Floor>(lane);
    case Opcode::kCeil:
      return SameUnary<Ceil>(lane);
    case Opcode::kTrunc:
      return SameUnary<Truncate>(lane);
    case Opcode::kRoundEven:
      return SameUnary<RoundEven>(lane);
    case Opcode::kRound:
      return SameUnary<RoundAway>(lane);
    default:
      return nullptr;
  }
}

Binary FindFloatBinary(Opcode opcode, Lane lane, int form) {
  switch (opcode) {
    case Opcode::kAddF:
      return Same<Add>(lane, form);
    case Opcode::kSubF:
      return Same<Subtract>(lane, form);
    case Opcode::kMulF:
      return Same<Multiply>(lane, form);
    case Opcode::kDivF:
    case Opcode::kPreciseDivF:
      return Same<Divide>(lane, form);
    case Opcode::kRemF:
      return Same<Remainder>(lane, form);
    case Opcode::kMaximumF:
      return Same<Maximum>(lane, form);
    case Opcode::kMinimumF:
      return Same<Minimum>(lane, form);
    case Opcode::kMaxNumF:
      return Same<MaximumNumber>(lane, form);
    case Opcode::kMinNumF:
      return Same<MinimumNumber>(lane, form);
    default:
      return nullptr;
  }
}

Ternary FindFloatTernary(Opcode opcode, Lane lane, int form) {
  if (lane != Lane::kF32 && lane != Lane::kF64) return nullptr;
  const bool is_float = lane == Lane::kF32;
  if (opcode == Opcode::kFma) {
    return is_float ? TernaryOf<float, float, FusedMultiplyAdd>(form)
                    : TernaryOf<double, double, FusedMultiplyAdd>(form);
  }
  if (opcode != Opcode::kClampF) return nullptr;
  return is_float ? TernaryOf<float, float, Clamp>(form) : TernaryOf<double, double, Clamp>(form);
}

void ClampFloats(void* out, const void* x, const void* low, const void* high, int64_t count) {
  TernaryLoop<float, float, ClampPropagatingNan, 0>(out, x, low, high, count);
}

void ClampDoubles(void* out, const void* x, const void* low, const void* high, int64_t count) {
  TernaryLoop<double, double, ClampPropagatingNan, 0>(out, x, low, high, count);
}

Binary FindFloatCompare(FloatPredicate predicate, Lane lane, int form) {
  if (lane != Lane::kF32 && lane != Lane::kF64) return nullptr;
  switch (predicate) {
#define TRITONRL_TTIR_CASE(name, functor) \
  case FloatPredicate::name:              \
    return Compare<functor>(lane, form);
    TRITONRL_TTIR_CASE(kFalse, Never)
    TRITONRL_TTIR_CASE(kOeq, OrderedEqual)
    TRITONRL_TTIR_CASE(kOgt, OrderedGreater)
    TRITONRL_TTIR_CASE(kOge, OrderedGreaterEqual)
    TRITONRL_TTIR_CASE(kOlt, OrderedLess)
    TRITONRL_TTIR_CASE(kOle, OrderedLessEqual)
    TRITONRL_TTIR_CASE(kOne, OrderedNotEqual)
    TRITONRL_TTIR_CASE(kOrd, Ordered)
    TRITONRL_TTIR_CASE(kUeq, UnorderedEqual)
    TRITONRL_TTIR_CASE(kUgt, UnorderedGreater)
    TRITONRL_TTIR_CASE(kUge, UnorderedGreaterEqual)
    TRITONRL_TTIR_CASE(kUlt, UnorderedLess)
    TRITONRL_TTIR_CASE(kUle, UnorderedLessEqual)
    TRITONRL_TTIR_CASE(kUne, UnorderedNotEqual)
    TRITONRL_TTIR_CASE(kUno, Unordered)
    TRITONRL_TTIR_CASE(kTrue, Always)
#undef TRITONRL_TTIR_CASE
  }
  return nullptr;
}

Unary FindFloatTest(Opcode opcode, Lane lane) {
  switch (opcode) {
    case Opcode::kIsFinite:
      return Test<IsFinite>(lane);
    case Opcode::kIsInf:
      return Test<IsInfinite>(lane);
    case Opcode::kIsNan:
      return Test<IsNan>(lane);
    case Opcode::kIsNormal:
      return Test<IsNormal>(lane);
    default:
      return nullptr;
  }
}

Binary FindFloatPower(Lane lane, Lane exponent) {
  return lane == Lane::kF32 ? PowerOf<float>(exponent) : PowerOf<double>(exponent);
}

}  // namespace tritonrl::ttir::TRITONRL_TTIR_SET
