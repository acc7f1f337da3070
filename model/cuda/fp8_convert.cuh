// bf16 elements to fp8 numbers.
#ifndef TRITONRL_MODEL_CUDA_FP8_CONVERT_CUH_
#define TRITONRL_MODEL_CUDA_FP8_CONVERT_CUH_

#include <cuda_fp8.h>

#include <cstdint>

#include "model/cuda/fp8.h"

namespace tritonrl {

// What elements are multiplied by, and what the numbers stand for; NaN if an element is not finite,
// so that every product of the matrix is NaN. amax: bits of the largest |x|.
template <Fp8Format kFormat>
struct Scales {
  __device__ explicit Scales(uint32_t amax) {
    const bool finite = IsFiniteAmax(amax);
    const int e = Fp8Exponent(amax, kFormat);
    scale = finite ? __uint_as_float(PowerOfTwoBits(e)) : __uint_as_float(0x7fc00000);
    inverse = finite ? __uint_as_float(PowerOfTwoBits(-e)) : scale;
  }
  float scale, inverse;
};

// Two elements of bf16 to two bytes, the first in the lower.
template <Fp8Format kFormat>
__device__ uint32_t Convert2(uint32_t two, float inverse) {
  constexpr __nv_fp8_interpretation_t kKind = kFormat == Fp8Format::kE4M3 ? __NV_E4M3 : __NV_E5M2;
  const float2 values = make_float2(__uint_as_float(two << 16) * inverse,
                                    __uint_as_float(two & 0xffff0000) * inverse);
  return __nv_cvt_float2_to_fp8x2(values, __NV_SATFINITE, kKind);
}
template <Fp8Format kFormat>
__device__ uint2 Convert8(uint4 pack, float inverse) {
  return make_uint2(Convert2<kFormat>(pack.x, inverse) | Convert2<kFormat>(pack.y, inverse) << 16,
                    Convert2<kFormat>(pack.z, inverse) | Convert2<kFormat>(pack.w, inverse) << 16);
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_FP8_CONVERT_CUH_
