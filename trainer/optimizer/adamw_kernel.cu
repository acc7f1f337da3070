#include <cuda_bf16.h>

#include <algorithm>

#include "trainer/optimizer/adamw_kernel.h"

namespace tritonrl {
namespace {

constexpr int kThreads = 256;
constexpr int kPack = 4;  // elements per vector access of a thread: 16 bytes of fp32
constexpr int64_t kMaxBlocks = 1 << 20;

__device__ inline float& At(float4& pack, int k) { return reinterpret_cast<float*>(&pack)[k]; }

__device__ inline void StoreRounded(const float4& w, int64_t i, float* out) {
  reinterpret_cast<float4*>(out)[i] = w;
}
__device__ inline void StoreRounded(const float4& w, int64_t i, __nv_bfloat16* out) {
  __nv_bfloat162 halves[2] = {__floats2bfloat162_rn(w.x, w.y), __floats2bfloat162_rn(w.z, w.w)};
  reinterpret_cast<uint2*>(out)[i] = *reinterpret_cast<const uint2*>(halves);
}

template <typename T>
__global__ void __launch_bounds__(kThreads) AdamWKernel(AdamWScalars s, AdamWBuffers b) {
  const int64_t packs = b.elements / kPack;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < packs;
       i += stride) {
    const float4 gradient = reinterpret_cast<const float4*>(b.gradient)[i];
    float4 w = reinterpret_cast<float4*>(b.master)[i];
    float4 m = reinterpret_cast<float4*>(b.first_moment)[i];
    float4 v = reinterpret_cast<float4*>(b.second_moment)[i];
    const bool decays = b.decayed != nullptr && b.decayed[i / (kDecayBlock / kPack)] != 0;
    const float kept = decays ? 1.0f - s.decay : 1.0f;
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      const float g = reinterpret_cast<const float*>(&gradient)[k] * s.gradient_scale;
      At(m, k) = s.beta1 * At(m, k) + (1.0f - s.beta1) * g;
      At(v, k) = s.beta2 * At(v, k) + (1.0f - s.beta2) * g * g;
      const float root = sqrtf(At(v, k)) * s.inverse_correction + s.epsilon;
      At(w, k) = At(w, k) * kept - s.step * At(m, k) / root;
    }
    reinterpret_cast<float4*>(b.master)[i] = w;
    reinterpret_cast<float4*>(b.first_moment)[i] = m;
    reinterpret_cast<float4*>(b.second_moment)[i] = v;
    if (b.rounded != nullptr) StoreRounded(w, i, static_cast<T*>(b.rounded));
  }
}

}  // namespace

void LaunchAdamW(const AdamWScalars& scalars, const AdamWBuffers& buffers, cudaStream_t stream) {
  const int64_t blocks = (buffers.elements / kPack + kThreads - 1) / kThreads;
  if (blocks == 0) return;
  const unsigned grid = static_cast<unsigned>(std::min(blocks, kMaxBlocks));
  if (buffers.rounded_is_bf16) {
    AdamWKernel<__nv_bfloat16><<<grid, kThreads, 0, stream>>>(scalars, buffers);
  } else {
    AdamWKernel<float><<<grid, kThreads, 0, stream>>>(scalars, buffers);
  }
}

}  // namespace tritonrl
