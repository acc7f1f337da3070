// Functions of the math dialect. Those that kernels use most are computed for floats in double by
// polynomials without branches, and rounded once: the result is the correctly rounded one but for
// rare ties, where the GPU's approximation is within 2 ulp. The rest is libm, element by element.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "exec/ttir/run/kernels/loops.h"
#include "exec/ttir/run/kernels/sets.h"

namespace tritonrl::ttir::TRITONRL_TTIR_SET {
namespace {

constexpr double kLn2 = 0.69314718055994530942;
constexpr double kLog2E = 1.44269504088896340736;
constexpr double kLog10E = 0.43429448190325182765;
// Adding it to |x| < 2^51 leaves x, rounded to an integer, in the low bits of the sum.
constexpr double kIntegerShift = 6755399441055744.0;  // 1.5 * 2^52

// a * b + c, with one rounding where the set has an instruction for it: the loops have half as many
// operations then.
inline double MulAdd(double a, double b, double c) {
#ifdef __FMA__
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}

// exp(r) 2^n with n in the low bits of `shifted`; |r| <= ln(2) / 2, n > -1000. The relative error
// of the Taylor polynomial of degree 9 is below 2^-36.
inline double ScaledExp(double r, double shifted) {
  double p = 1.0 / 362880;
  p = MulAdd(p, r, 1.0 / 40320);
  p = MulAdd(p, r, 1.0 / 5040);
  p = MulAdd(p, r, 1.0 / 720);
  p = MulAdd(p, r, 1.0 / 120);
  p = MulAdd(p, r, 1.0 / 24);
  p = MulAdd(p, r, 1.0 / 6);
  p = MulAdd(p, r, 0.5);
  p = MulAdd(p, r, 1.0);
  p = MulAdd(p, r, 1.0);
  return p * std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) + 1023) << 52);
}

inline double ExpOf(double x) {
  const double shifted = MulAdd(x, kLog2E, kIntegerShift);
  return ScaledExp(MulAdd(kIntegerShift - shifted, kLn2, x), shifted);
}

// `x` between two bounds; a NaN stays.
inline double Between(double x, double low, double high) {
  const double bounded = x > high ? high : x;
  return bounded < low ? low : bounded;
}

struct Exp {
  static float Of(float x) { return static_cast<float>(ExpOf(Between(x, -110.0, 95.0))); }
};
struct Exp2 {
  static float Of(float x) {
    const double bounded = Between(x, -160.0, 135.0);
    const double shifted = bounded + kIntegerShift;
    return static_cast<float>(ScaledExp((bounded - (shifted - kIntegerShift)) * kLn2, shifted));
  }
};

// exponent * per_exponent + log(mantissa) * per_unit, the mantissa between sqrt(1/2) and sqrt(2).
inline float LogOf(float x, double per_exponent, double per_unit) {
  const uint64_t bits = std::bit_cast<uint64_t>(static_cast<double>(x));
  const double mantissa = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFu) | 0x3FF0000000000000u);
  const bool large = mantissa > 1.4142135623730951;
  const double m = large ? mantissa * 0.5 : mantissa;
  // The biased exponent as the low bits of 2^52.
  const double biased = std::bit_cast<double>((bits >> 52) | 0x4330000000000000u);
  const double exponent = biased - (large ? 4503599627370496.0 + 1022 : 4503599627370496.0 + 1023);
  // log(m) = 2 atanh(s), |s| < 0.1716: the series' rest is below 2^-39 of it.
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double p = 1.0 / 13;
  p = MulAdd(p, z, 1.0 / 11);
  p = MulAdd(p, z, 1.0 / 9);
  p = MulAdd(p, z, 1.0 / 7);
  p = MulAdd(p, z, 1.0 / 5);
  p = MulAdd(p, z, 1.0 / 3);
  p = MulAdd(p, z, 1.0);
  const auto finite = static_cast<float>(exponent * per_exponent + 2.0 * s * p * per_unit);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float positive = x < kInfinity ? finite : x;  // infinity and NaN are their own logarithm
  const float other = x == 0.0f ? -kInfinity : std::numeric_limits<float>::quiet_NaN();
  return x <= 0.0f ? other : positive;
}
struct Log {
  static float Of(float x) { return LogOf(x, kLn2, 1.0); }
};
struct Log2 {
  static float Of(float x) { return LogOf(x, 1.0, kLog2E); }
};
struct Log10 {
  static float Of(float x) { return LogOf(x, kLn2 * kLog10E, kLog10E); }
};

struct Tanh {
  static float Of(float x) {
    const float magnitude = std::fabs(x);
    const double t = ExpOf(Between(2.0 * magnitude, 0.0, 40.0));
    const auto whole = static_cast<float>(1.0 - 2.0 / (t + 1.0));
    // Below 2^-12 the cubic term is less than half an ulp; above, cancellation costs 2^-41 at most.
    const float result = magnitude < 0x1p-12f ? magnitude : whole;
    return std::copysign(result, x);
  }
};
struct ReciprocalSquareRoot {
  static float Of(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
  static double Of(double x) { return 1.0 / std::sqrt(x); }
};

#define TRITONRL_TTIR_LIBM(name, function)             \
  struct name {                                        \
    static float Of(float x) { return function(x); }   \
    static double Of(double x) { return function(x); } \
  };
TRITONRL_TTIR_LIBM(LibmExp, std::exp)
TRITONRL_TTIR_LIBM(LibmExp2, std::exp2)
TRITONRL_TTIR_LIBM(LibmLog, std::log)
TRITONRL_TTIR_LIBM(LibmLog2, std::log2)
TRITONRL_TTIR_LIBM(LibmLog10, std::log10)
TRITONRL_TTIR_LIBM(LibmTanh, std::tanh)
TRITONRL_TTIR_LIBM(Acos, std::acos)
TRITONRL_TTIR_LIBM(Acosh, std::acosh)
TRITONRL_TTIR_LIBM(Asin, std::asin)
TRITONRL_TTIR_LIBM(Asinh, std::asinh)
TRITONRL_TTIR_LIBM(Atan, std::atan)
TRITONRL_TTIR_LIBM(Atanh, std::atanh)
TRITONRL_TTIR_LIBM(Cbrt, std::cbrt)
TRITONRL_TTIR_LIBM(Cos, std::cos)
TRITONRL_TTIR_LIBM(Cosh, std::cosh)
TRITONRL_TTIR_LIBM(Erf, std::erf)
TRITONRL_TTIR_LIBM(Erfc, std::erfc)
TRITONRL_TTIR_LIBM(ExpM1, std::expm1)
TRITONRL_TTIR_LIBM(Log1P, std::log1p)
TRITONRL_TTIR_LIBM(Sin, std::sin)
TRITONRL_TTIR_LIBM(Sinh, std::sinh)
TRITONRL_TTIR_LIBM(Tan, std::tan)
#undef TRITONRL_TTIR_LIBM

struct Atan2 {
  template <typename T>
  static T Of(T a, T b) {
    return std::atan2(a, b);
  }
};
struct CopySign {
  template <typename T>
  static T Of(T a, T b) {
    return std::copysign(a, b);
  }
};
struct Power {
  template <typename T>
  static T Of(T a, T b) {
    return std::pow(a, b);
  }
};

template <typename OfFloats, typename OfDoubles>
Unary Either(Lane lane) {
  return lane == Lane::kF32 ? UnaryLoop<float, float, OfFloats>
                            : UnaryLoop<double, double, OfDoubles>;
}

template <typename F>
Binary EitherBinary(Lane lane, int form) {
  return lane == Lane::kF32 ? BinaryOf<float, float, F>(form) : BinaryOf<double, double, F>(form);
}

}  // namespace

Unary FindMath(Opcode opcode, Lane lane) {
  switch (opcode) {
#define TRITONRL_TTIR_CASE(name, of_floats, of_doubles) \
  case Opcode::k##name:                                 \
    return Either<of_floats, of_doubles>(lane);
    TRITONRL_TTIR_CASE(Exp, Exp, LibmExp)
    TRITONRL_TTIR_CASE(Exp2, Exp2, LibmExp2)
    TRITONRL_TTIR_CASE(Log, Log, LibmLog)
    TRITONRL_TTIR_CASE(Log2, Log2, LibmLog2)
    TRITONRL_TTIR_CASE(Log10, Log10, LibmLog10)
    TRITONRL_TTIR_CASE(Tanh, Tanh, LibmTanh)
    TRITONRL_TTIR_CASE(Rsqrt, ReciprocalSquareRoot, ReciprocalSquareRoot)
    TRITONRL_TTIR_CASE(Acos, Acos, Acos)
    TRITONRL_TTIR_CASE(Acosh, Acosh, Acosh)
    TRITONRL_TTIR_CASE(Asin, Asin, Asin)
    TRITONRL_TTIR_CASE(Asinh, Asinh, Asinh)
    TRITONRL_TTIR_CASE(Atan, Atan, Atan)
    TRITONRL_TTIR_CASE(Atanh, Atanh, Atanh)
    TRITONRL_TTIR_CASE(Cbrt, Cbrt, Cbrt)
    TRITONRL_TTIR_CASE(Cos, Cos, Cos)
    TRITONRL_TTIR_CASE(Cosh, Cosh, Cosh)
    TRITONRL_TTIR_CASE(Erf, Erf, Erf)
    TRITONRL_TTIR_CASE(Erfc, Erfc, Erfc)
    TRITONRL_TTIR_CASE(ExpM1, ExpM1, ExpM1)
    TRITONRL_TTIR_CASE(Log1P, Log1P, Log1P)
    TRITONRL_TTIR_CASE(Sin, Sin, Sin)
    TRITONRL_TTIR_CASE(Sinh, Sinh, Sinh)
    TRITONRL_TTIR_CASE(Tan, Tan, Tan)
#undef TRITONRL_TTIR_CASE
    default:
      return nullptr;
  }
}

Binary FindBinaryMath(Opcode opcode, Lane lane, int form) {
  switch (opcode) {
    case Opcode::kAtan2:
      return EitherBinary<Atan2>(lane, form);
    case Opcode::kCopySign:
      return EitherBinary<CopySign>(lane, form);
    case Opcode::kPowF:
      return EitherBinary<Power>(lane, form);
    default:
      return nullptr;
  }
}

}  // namespace tritonrl::ttir::TRITONRL_TTIR_SET
