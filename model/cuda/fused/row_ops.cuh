// Device functions on rows of bf16 or fp32: 16-byte packs, sums over warps and blocks, RMSNorm and
// SwiGLU of a pack. Kernels that use the same functions give the same bits.

#ifndef TRITONRL_MODEL_CUDA_FUSED_ROW_OPS_CUH_
#define TRITONRL_MODEL_CUDA_FUSED_ROW_OPS_CUH_

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
__device__ T RoundTo(float x);
template <>
__device__ inline float RoundTo<float>(float x) {
  return x;
}
template <>
__device__ inline __nv_bfloat16 RoundTo<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

// Returns silu(gate) * up, rounded twice as in Hugging Face's modules.
template <typename T>
__device__ T SiluMul(T gate, T up) {
  const float g = ToFloat(gate);
  const float silu = ToFloat(RoundTo<T>(g / (1.0f + __expf(-g))));
  return RoundTo<T>(silu * ToFloat(up));
}

// Loads pack number `pack` of 16-byte aligned memory.
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

// Returns to every thread the sum of x over the block, which consists of whole warps. The order of
// the sum is fixed. `room`: 32 floats of shared memory, which the block may reuse after its next
// __syncthreads().
__device__ inline float BlockSum(float x, float* room) {
  x = WarpSum(x);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  if (lane == 0) room[warp] = x;
  __syncthreads();
  return WarpSum(lane < warps ? room[lane] : 0.0f);
}

// Threads of a block for RMSNorm. Thread i % kRmsThreads handles pack i of a row, which fixes the
// order of the row's sum.
inline constexpr int kRmsThreads = 256;

template <typename T>
__device__ void AddSquares(const Pack<T>& a, float* sum) {
#pragma unroll
  for (int k = 0; k < Pack<T>::kSize; ++k) *sum += ToFloat(a.values[k]) * ToFloat(a.values[k]);
}

// Returns 1 / sqrt(mean(x^2) + eps) of a row. `squares`: the sum of x^2, summed by BlockSum or in
// the same order.
__device__ inline float InverseRms(float squares, int64_t cols, float eps) {
  return rsqrtf(squares / static_cast<float>(cols) + eps);
}

// Returns a * inverse * weight, rounded twice as in Hugging Face's modules.
template <typename T>
__device__ Pack<T> ApplyRmsNorm(Pack<T> a, const Pack<T>& weight, float inverse) {
#pragma unroll
  for (int k = 0; k < Pack<T>::kSize; ++k) {
    const float normed = ToFloat(RoundTo<T>(ToFloat(a.values[k]) * inverse));
    a.values[k] = RoundTo<T>(normed * ToFloat(weight.values[k]));
  }
  return a;
}
// Gives the same bits with half of the instructions: the product of two bf16 is exact in fp32, so
// one __hmul2 multiplies and rounds two elements.
__device__ inline Pack<__nv_bfloat16> ApplyRmsNorm(Pack<__nv_bfloat16> a,
                                                   const Pack<__nv_bfloat16>& weight,
                                                   float inverse) {
#pragma unroll
  for (int k = 0; k < Pack<__nv_bfloat16>::kSize; k += 2) {
    const __nv_bfloat162 normed =
        __floats2bfloat162_rn(ToFloat(a.values[k]) * inverse, ToFloat(a.values[k + 1]) * inverse);
    const __nv_bfloat162 result =
        __hmul2(normed, __nv_bfloat162(weight.values[k], weight.values[k + 1]));
    a.values[k] = result.x;
    a.values[k + 1] = result.y;
  }
  return a;
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_FUSED_ROW_OPS_CUH_
