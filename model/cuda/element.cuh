// Reading and writing rows of bf16 or fp32 in pieces of 16 bytes, and sums over a block.
#ifndef TRITONRL_MODEL_CUDA_ELEMENT_CUH_
#define TRITONRL_MODEL_CUDA_ELEMENT_CUH_

#include <cuda_bf16.h>

#include <cstdint>

namespace tritonrl {

template <typename T>
struct alignas(16) Pack {
  static constexpr int kSize = 16 / sizeof(T);
  T values[kSize];
};

__device__ inline float ToFloat(float x) { return x; }
__device__ inline float ToFloat(__nv_bfloat16 x) { return __bfloat162float(x); }
template <typename T>
__device__ T Rounded(float x);
template <>
__device__ inline float Rounded<float>(float x) {
  return x;
}
template <>
__device__ inline __nv_bfloat16 Rounded<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

// silu(gate) * up, rounded twice as in Hugging Face's modules.
template <typename T>
__device__ T GatedBySilu(T gate, T up) {
  const float g = ToFloat(gate);
  const float silu = ToFloat(Rounded<T>(g / (1.0f + __expf(-g))));
  return Rounded<T>(silu * ToFloat(up));
}

// A pack of memory that lies at a multiple of 16 bytes.
template <typename T>
__device__ Pack<T> Load(const T* from, int64_t pack) {
  Pack<T> result;
  *reinterpret_cast<uint4*>(&result) = reinterpret_cast<const uint4*>(from)[pack];
  return result;
}
template <typename T>
__device__ void Store(const Pack<T>& value, T* to, int64_t pack) {
  reinterpret_cast<uint4*>(to)[pack] = *reinterpret_cast<const uint4*>(&value);
}

__device__ inline float WarpSum(float x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}

// The sum over all threads of a block of whole warps, for every thread; always in the same order.
// `room` holds 32 floats; the block may use it again after its next __syncthreads().
__device__ inline float BlockSum(float x, float* room) {
  x = WarpSum(x);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  if (lane == 0) room[warp] = x;
  __syncthreads();
  return WarpSum(lane < warps ? room[lane] : 0.0f);
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_ELEMENT_CUH_
