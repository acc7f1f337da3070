// Device functions for FP8: the largest |x| of a matrix, as fp32 bits so that the result does not
// depend on the order of reduction, and the conversion of bf16 elements.

#ifndef TRITONRL_MODEL_CUDA_FUSED_FP8_CUH_
#define TRITONRL_MODEL_CUDA_FUSED_FP8_CUH_

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "model/cuda/common/fp8_format.h"
#include "model/cuda/fused/row_ops.cuh"

namespace tritonrl {

// The largest |x| of the elements that a thread has passed to Take. For bf16 each half of the word
// holds the maximum of every second element.
template <typename T>
struct Amax;

template <>
struct Amax<__nv_bfloat16> {
  uint32_t bits = 0;
  __device__ void Take(uint4 pack) {
    constexpr uint32_t kAbs = 0x7fff7fff;
    bits = __vmaxu2(bits, __vmaxu2(__vmaxu2(pack.x & kAbs, pack.y & kAbs),
                                   __vmaxu2(pack.z & kAbs, pack.w & kAbs)));
  }
  __device__ uint32_t Fp32Bits() const { return max(bits << 16, bits & 0xffff0000); }
};

template <>
struct Amax<float> {
  uint32_t bits = 0;
  __device__ void Take(uint4 pack) {
    constexpr uint32_t kAbs = 0x7fffffff;
    bits = max(bits, max(max(pack.x & kAbs, pack.y & kAbs), max(pack.z & kAbs, pack.w & kAbs)));
  }
  __device__ uint32_t Fp32Bits() const { return bits; }
};

template <typename T>
__device__ void UpdateAmax(const Pack<T>& pack, Amax<T>* amax) {
  amax->Take(*reinterpret_cast<const uint4*>(&pack));
}

// Raises *to, which is 0 before the kernel, to the block's largest |x|. All threads of the block
// make the call; the block consists of whole warps. `room`: 32 words of shared memory with no other
// use.
template <typename T>
__device__ void BlockAtomicMax(const Amax<T>& amax, uint32_t* room, uint32_t* to) {
  const uint32_t most = __reduce_max_sync(~0u, amax.Fp32Bits());
  if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = most;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  const uint32_t all =
      __reduce_max_sync(~0u, threadIdx.x < blockDim.x / 32 ? room[threadIdx.x] : 0);
  // For most blocks *to already holds a larger value, so they skip the atomic operation.
  if (threadIdx.x == 0 && all > *static_cast<volatile uint32_t*>(to)) atomicMax(to, all);
}

// The scale factors of a matrix: elements are multiplied by `inverse` before rounding, and a GEMM
// multiplies the FP8 values by `scale`. Both are NaN if an element is not finite, so that every
// GEMM of the matrix gives NaN. amax: fp32 bits of the largest |x|.
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

// Converts two bf16 elements to two FP8 bytes; the first element becomes the lower byte.
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

#endif  // TRITONRL_MODEL_CUDA_FUSED_FP8_CUH_
