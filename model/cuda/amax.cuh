// The largest |x| of a matrix, as the bits of an fp32 number (see fp8.h): the same in whatever
// order it is taken.
#ifndef TRITONRL_MODEL_CUDA_AMAX_CUH_
#define TRITONRL_MODEL_CUDA_AMAX_CUH_

#include <cuda_bf16.h>

#include <cstdint>

#include "model/cuda/element.cuh"

namespace tritonrl {

// Of a thread's elements so far; for bf16 two maxima side by side, a half of the word each.
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
__device__ void TakeAmax(const Pack<T>& pack, Amax<T>* amax) {
  amax->Take(*reinterpret_cast<const uint4*>(&pack));
}

// Raises *to, which was 0 before the kernel, to the block's largest. All threads of a block of
// whole warps call it; `room` holds 32 words that nothing else is done with.
template <typename T>
__device__ void RaiseToBlock(const Amax<T>& amax, uint32_t* room, uint32_t* to) {
  const uint32_t most = __reduce_max_sync(~0u, amax.Fp32Bits());
  if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = most;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  const uint32_t all =
      __reduce_max_sync(~0u, threadIdx.x < blockDim.x / 32 ? room[threadIdx.x] : 0);
  // Most blocks find a larger one there already and save the atomic operation.
  if (threadIdx.x == 0 && all > *static_cast<volatile uint32_t*>(to)) atomicMax(to, all);
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_AMAX_CUH_
