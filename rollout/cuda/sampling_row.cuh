// A row of logits as the sampling kernels see it, and its uniform number.
#ifndef TRITONRL_ROLLOUT_CUDA_SAMPLING_ROW_CUH_
#define TRITONRL_ROLLOUT_CUDA_SAMPLING_ROW_CUH_

#include <cstdint>

#include "model/cuda/element.cuh"
#include "rollout/cuda/gpu_sampler.h"

namespace tritonrl {

// Logits that one warp sums up: 16 for each lane.
inline constexpr int kTileLogits = 512;

struct LogitsRow {
  const float* logits;
  int vocab;
  float scale;  // 1 / temperature; 1 for temperature 0
  float max;    // the largest logit; not yet known to the kernel that finds it

  __device__ LogitsRow(const SamplingBatch& batch, const SamplingRow& draw)
      : logits(batch.logits + draw.logits_row * batch.vocab),
        vocab(static_cast<int>(batch.vocab)),
        scale(draw.temperature == 0 ? 1.0f : static_cast<float>(1.0 / draw.temperature)),
        max(0) {}

  // The token's probability divided by that of the most likely one.
  __device__ float Weight(float logit) const { return expf((logit - max) * scale); }

  // Calls take(id, logit) for all logits, spread over the block's threads.
  template <typename Function>
  __device__ void ForEach(Function take) const {
#pragma unroll 4
    for (int pack = threadIdx.x; pack < vocab / 4; pack += blockDim.x) {
      const Pack<float> z = Load(logits, pack);
#pragma unroll
      for (int k = 0; k < 4; ++k) take(pack * 4 + k, z.values[k]);
    }
  }
};

// Philox(key, stream).Uniform() of base/random.h: the first 53 bits of the stream's first block.
__device__ inline double PhiloxUniform(uint64_t key, uint64_t stream) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  uint32_t c0 = 0, c1 = 0, c2 = static_cast<uint32_t>(stream);
  uint32_t c3 = static_cast<uint32_t>(stream >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint32_t low0 = 0xD2511F53u * c0, high0 = __umulhi(0xD2511F53u, c0);
    const uint32_t low1 = 0xCD9E8D57u * c2, high1 = __umulhi(0xCD9E8D57u, c2);
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const uint64_t bits = (static_cast<uint64_t>(c0) << 32) | c1;
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

// Numbers in the order of floats without their comparison: a < b where Ordered(a) < Ordered(b). -0
// counts as 0.
__device__ inline uint32_t Ordered(float x) {
  const uint32_t bits = __float_as_uint(x + 0.0f);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
__device__ inline float FromOrdered(uint32_t ordered) {
  return __uint_as_float(ordered >> 31 ? ordered & 0x7fffffffu : ~ordered);
}

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_SAMPLING_ROW_CUH_
