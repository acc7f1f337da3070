// What RMSNorm and products that norm their own rows share, so that both give the same bits.
#ifndef TRITONRL_MODEL_CUDA_RMS_CUH_
#define TRITONRL_MODEL_CUDA_RMS_CUH_

#include "model/cuda/element.cuh"

namespace tritonrl {

// Threads over which the packs of a row are dealt in turn: the order of its sum.
inline constexpr int kRmsThreads = 256;

template <typename T>
__device__ void AddSquares(const Pack<T>& a, float* sum) {
#pragma unroll
  for (int k = 0; k < Pack<T>::kSize; ++k) *sum += ToFloat(a.values[k]) * ToFloat(a.values[k]);
}

// From the sum of a row's squares, which WarpSum of what threads have summed and then WarpSum over
// the warps has made.
__device__ inline float InverseRms(float squares, int64_t cols, float eps) {
  return rsqrtf(squares / static_cast<float>(cols) + eps);
}

// a * inverse * weight, rounded twice as in Hugging Face's modules.
template <typename T>
__device__ Pack<T> Normed(Pack<T> a, const Pack<T>& weight, float inverse) {
#pragma unroll
  for (int k = 0; k < Pack<T>::kSize; ++k) {
    const float normed = ToFloat(Rounded<T>(ToFloat(a.values[k]) * inverse));
    a.values[k] = Rounded<T>(normed * ToFloat(weight.values[k]));
  }
  return a;
}
// The same bits by half of the instructions: the product of two bf16 is exact in fp32, so that
// rounding it is one instruction for two of them.
__device__ inline Pack<__nv_bfloat16> Normed(Pack<__nv_bfloat16> a,
                                             const Pack<__nv_bfloat16>& weight, float inverse) {
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

#endif  // TRITONRL_MODEL_CUDA_RMS_CUH_
