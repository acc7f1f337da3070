// Functions of CUDA's device library that are no operations of the math dialect. Floats are
// computed in double and rounded once.
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "exec/ttir/run/kernels/loops.h"
#include "exec/ttir/run/kernels/sets.h"

namespace tritonrl::ttir::TRITONRL_TTIR_SET {
namespace {

struct Gamma {
  static double Of(double x) { return std::tgamma(x); }
};
struct LogGamma {
  static double Of(double x) {
    int sign = 0;
    return ::lgamma_r(x, &sign);  // lgamma writes a global variable
  }
};
struct Exp10 {
  static double Of(double x) { return std::pow(10.0, x); }
};
// The remainder by 2 is exact, so that large numbers keep their fraction.
struct SinPi {
  static double Of(double x) { return std::sin(std::numbers::pi * std::remainder(x, 2.0)); }
};
struct CosPi {
  static double Of(double x) { return std::cos(std::numbers::pi * std::remainder(x, 2.0)); }
};
struct ReciprocalCubeRoot {
  static double Of(double x) { return 1.0 / std::cbrt(x); }
};
struct NormalDistribution {
  static double Of(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
};
template <typename F>
struct OfFloat {
  static float Of(float x) { return static_cast<float>(F::Of(static_cast<double>(x))); }
};

struct FindFirstSet {
  template <typename T>
  static T Of(T x) {
    const auto bits = static_cast<std::make_unsigned_t<T>>(x);
    return x == 0 ? T{0} : static_cast<T>(std::countr_zero(bits) + 1);
  }
};
struct SignBit {
  template <typename T>
  static uint8_t Of(T x) {
    return std::signbit(x) ? 1 : 0;
  }
};

struct Hypotenuse {
  template <typename T>
  static T Of(T a, T b) {
    return std::hypot(a, b);
  }
};
struct PositiveDifference {
  template <typename T>
  static T Of(T a, T b) {
    return std::fdim(a, b);
  }
};
struct NextAfter {
  template <typename T>
  static T Of(T a, T b) {
    return std::nextafter(a, b);
  }
};
struct NearestRemainder {
  template <typename T>
  static T Of(T a, T b) {
    return std::remainder(a, b);
  }
};

template <typename F>
Unary Floats(Lane lane) {
  if (lane == Lane::kF64) return UnaryLoop<double, double, F>;
  return lane == Lane::kF32 ? UnaryLoop<float, float, OfFloat<F>> : nullptr;
}
template <typename F>
Binary Floats(Lane lane, int form) {
  if (lane == Lane::kF64) return BinaryOf<double, double, F>(form);
  return lane == Lane::kF32 ? BinaryOf<float, float, F>(form) : nullptr;
}

}  // namespace

Unary FindLibraryUnary(LibraryFunction function, Lane lane) {
  switch (function) {
    case LibraryFunction::kGamma:
      return Floats<Gamma>(lane);
    case LibraryFunction::kLogGamma:
      return Floats<LogGamma>(lane);
    case LibraryFunction::kExp10:
      return Floats<Exp10>(lane);
    case LibraryFunction::kSinPi:
      return Floats<SinPi>(lane);
    case LibraryFunction::kCosPi:
      return Floats<CosPi>(lane);
    case LibraryFunction::kReciprocalCubeRoot:
      return Floats<ReciprocalCubeRoot>(lane);
    case LibraryFunction::kNormalDistribution:
      return Floats<NormalDistribution>(lane);
    case LibraryFunction::kFindFirstSet:
      if (lane == Lane::kI64) return UnaryLoop<int64_t, int64_t, FindFirstSet>;
      return lane == Lane::kI32 ? UnaryLoop<int32_t, int32_t, FindFirstSet> : nullptr;
    case LibraryFunction::kSignBit:
      if (lane == Lane::kF64) return UnaryLoop<uint8_t, double, SignBit>;
      return lane == Lane::kF32 ? UnaryLoop<uint8_t, float, SignBit> : nullptr;
    default:
      return nullptr;
  }
}

Binary FindLibraryBinary(LibraryFunction function, Lane lane, int form) {
  switch (function) {
    case LibraryFunction::kHypotenuse:
      return Floats<Hypotenuse>(lane, form);
    case LibraryFunction::kPositiveDifference:
      return Floats<PositiveDifference>(lane, form);
    case LibraryFunction::kNextAfter:
      return Floats<NextAfter>(lane, form);
    case LibraryFunction::kNearestRemainder:
      return Floats<NearestRemainder>(lane, form);
    default:
      return nullptr;
  }
}

}  // namespace tritonrl::ttir::TRITONRL_TTIR_SET
