// The FP8 formats, and the power of two by which a matrix is divided before its elements are
// rounded to FP8. All functions use integer arithmetic and give the same results on every device.

#ifndef TRITONRL_MODEL_CUDA_COMMON_FP8_FORMAT_H_
#define TRITONRL_MODEL_CUDA_COMMON_FP8_FORMAT_H_

#include <cstdint>

namespace tritonrl {

// E4M3 has 4 exponent and 3 mantissa bits, E5M2 5 and 2. Their largest numbers are 1.75 * 2^8 and
// 1.75 * 2^15, their smallest normal numbers 2^-6 and 2^-14.
enum class Fp8Format : uint8_t { kE4M3, kE5M2 };

constexpr int Fp8MaxExponent(Fp8Format format) { return format == Fp8Format::kE4M3 ? 8 : 15; }
constexpr int Fp8MinExponent(Fp8Format format) { return format == Fp8Format::kE4M3 ? -6 : -14; }
constexpr int Fp8MantissaBits(Fp8Format format) { return format == Fp8Format::kE4M3 ? 3 : 2; }

// As integers, the bits of |x| in fp32 sort like the numbers, with infinity and then NaN above all
// finite numbers. The maximum of these bits therefore keeps a NaN.
constexpr uint32_t kFp32AbsBits = 0x7fffffff;
constexpr bool IsFiniteAmax(uint32_t amax_bits) { return amax_bits < 0x7f800000; }

// Returns the smallest e for which amax / 2^e is in the format's range, but at least -126, so that
// 2^e and 2^-e are normal fp32 numbers. amax_bits: fp32 bits of the matrix's largest |x|, which is
// finite.
//
// Division by a power of two does not round. The scale of a GEMM is exact in bf16, and a change of
// e changes the quantized values only of elements below the format's normal numbers.
constexpr int Fp8Exponent(uint32_t amax_bits, Fp8Format format) {
  const int exponent = static_cast<int>(amax_bits >> 23) - 127;
  const int above = (amax_bits & 0x7fffff) > 0x600000 ? 1 : 0;  // more than 1.75 * 2^exponent
  const int e = exponent - Fp8MaxExponent(format) + above;
  return e < -126 ? -126 : e;
}

// Returns the bits of 2^e in fp32; e is in [-126, 127].
constexpr uint32_t PowerOfTwoBits(int e) { return static_cast<uint32_t>(e + 127) << 23; }

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_COMMON_FP8_FORMAT_H_
