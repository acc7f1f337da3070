// The FP8 formats and the power of two by which a matrix is divided before its elements are
// rounded to one of them: plain integer arithmetic, the same on every device.
//
// Dividing by a power of two rounds nothing. The scale of a GEMM is exact in bf16, and a change of
// the largest element changes only elements below the format's normal numbers.

#ifndef TRITONRL_MODEL_CUDA_COMMON_FP8_FORMAT_H_
#define TRITONRL_MODEL_CUDA_COMMON_FP8_FORMAT_H_

#include <cstdint>

namespace tritonrl {

// Sign, exponent, mantissa bits. The largest numbers are 1.75 * 2^8 and 1.75 * 2^15, the smallest
// normal ones 2^-6 and 2^-14.
enum class Fp8Format : uint8_t { kE4M3, kE5M2 };

constexpr int Fp8MaxExponent(Fp8Format format) { return format == Fp8Format::kE4M3 ? 8 : 15; }
constexpr int Fp8MinExponent(Fp8Format format) { return format == Fp8Format::kE4M3 ? -6 : -14; }
constexpr int Fp8MantissaBits(Fp8Format format) { return format == Fp8Format::kE4M3 ? 3 : 2; }

// The bits of |x| as integers have the order of the fp32 numbers, with infinity and then NaN above
// them, so the maximum of these bits keeps a NaN.
constexpr uint32_t kFp32AbsBits = 0x7fffffff;
constexpr bool IsFiniteAmax(uint32_t amax_bits) { return amax_bits < 0x7f800000; }

// The smallest e for which amax / 2^e is in the format's range, but at least -126, so that 2^e and
// 2^-e are normal numbers. amax_bits: of the matrix's largest |x| in fp32, finite.
constexpr int Fp8Exponent(uint32_t amax_bits, Fp8Format format) {
  const int exponent = static_cast<int>(amax_bits >> 23) - 127;
  const int above = (amax_bits & 0x7fffff) > 0x600000 ? 1 : 0;  // more than 1.75 * 2^exponent
  const int e = exponent - Fp8MaxExponent(format) + above;
  return e < -126 ? -126 : e;
}

// Bits of 2^e in fp32, e in [-126, 127].
constexpr uint32_t PowerOfTwoBits(int e) { return static_cast<uint32_t>(e + 127) << 23; }

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_COMMON_FP8_FORMAT_H_
