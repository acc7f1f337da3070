// A row of logits and its uniform number in the sampling kernels, and sums, searches and sorting
// within a block of kDrawThreads threads. All threads of the block must call each block function,
// which returns the same value to all of them unless said otherwise.
#ifndef TRITONRL_ROLLOUT_CUDA_SAMPLING_SAMPLING_PRIMITIVES_CUH_
#define TRITONRL_ROLLOUT_CUDA_SAMPLING_SAMPLING_PRIMITIVES_CUH_

#include <climits>
#include <cstdint>

#include "model/cuda/fused/row_ops.cuh"
#include "rollout/cuda/sampling/gpu_sampler.h"

namespace tritonrl {

// Logits of a tile, which one warp sums: 16 for each lane.
inline constexpr int kTileLogits = 512;

struct LogitsRow {
  const float* logits;
  int vocab;
  float scale;  // 1 / temperature; 1 for temperature 0
  float max;    // the largest logit; 0 in TileSumsKernel, which precedes the search for it

  __device__ LogitsRow(const SamplingBatch& batch, const SamplingRow& draw)
      : logits(batch.logits + draw.logits_row * batch.vocab),
        vocab(static_cast<int>(batch.vocab)),
        scale(draw.temperature == 0 ? 1.0f : static_cast<float>(1.0 / draw.temperature)),
        max(0) {}

  // The token's probability divided by that of the most likely one.
  __device__ float Weight(float logit) const { return expf((logit - max) * scale); }

  // Calls take(id, logit) for all logits, which are divided among the block's threads.
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

// Maps floats to integers in the same order: a < b if and only if Ordered(a) < Ordered(b). -0
// counts as 0.
__device__ inline uint32_t Ordered(float x) {
  const uint32_t bits = __float_as_uint(x + 0.0f);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
__device__ inline float FromOrdered(uint32_t ordered) {
  return __uint_as_float(ordered >> 31 ? ordered & 0x7fffffffu : ~ordered);
}

inline constexpr int kDrawThreads = 512;
inline constexpr int kDrawWarps = kDrawThreads / 32;

template <typename T>
__device__ T WarpScan(T x) {
  for (int step = 1; step < 32; step *= 2) {
    const T before = __shfl_up_sync(~0u, x, step);
    if (threadIdx.x % 32 >= step) x += before;
  }
  return x;
}

// Returns the sum of x over this thread and all threads before it, always added in the same order.
template <typename T>
__device__ T BlockScan(T x, T* total) {
  __shared__ T sums[kDrawWarps];
  const int warp = threadIdx.x / 32;
  x = WarpScan(x);
  __syncthreads();  // all threads have read the sums of the previous call
  if (threadIdx.x % 32 == 31) sums[warp] = x;
  __syncthreads();
  T before = 0, all = 0;
  for (int w = 0; w < kDrawWarps; ++w) {
    if (w == warp) before = all;
    all += sums[w];
  }
  *total = all;
  return before + x;
}

__device__ inline int BlockMin(int x) {
  __shared__ int room[kDrawWarps];
  x = __reduce_min_sync(~0u, x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = x;
  __syncthreads();
  int least = INT_MAX;
  for (int w = 0; w < kDrawWarps; ++w) least = min(least, room[w]);
  return least;
}

__device__ inline float BlockMax(float x) {
  __shared__ float room[kDrawWarps];
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
  __syncthreads();
  if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = x;
  __syncthreads();
  float most = -INFINITY;
  for (int w = 0; w < kDrawWarps; ++w) most = fmaxf(most, room[w]);
  return most;
}

// The lowest i in [0, n) with holds(i); n if there is none.
template <typename Function>
__device__ int BlockFirst(int n, Function holds) {
  int first = n;
  for (int i = threadIdx.x; i < n; i += kDrawThreads) {
    if (holds(i)) {
      first = i;
      break;
    }
  }
  return BlockMin(first);
}

// prefix[i] = of(0) + ... + of(i) for i in [0, n). prefix is shared memory, and of(i) may read
// prefix[i]. Returns the total sum.
template <typename T, typename Function>
__device__ T BlockPrefix(int n, T* prefix, Function of) {
  T carry = 0;
  for (int begin = 0; begin < n; begin += kDrawThreads) {
    const int i = begin + threadIdx.x;
    T total;
    const T sum = BlockScan<T>(i < n ? of(i) : T{0}, &total);
    if (i < n) prefix[i] = carry + sum;
    carry += total;
  }
  __syncthreads();
  return carry;
}

// Sorts values[0, n) in shared memory in ascending order by a bitonic network. The array must have
// room up to the next power of two, which is overwritten. Synchronizes the block at the beginning
// and at the end.
__device__ inline void BlockSort(int n, uint64_t* values) {
  int size = 1;
  while (size < n) size *= 2;
  for (int i = n + threadIdx.x; i < size; i += kDrawThreads) values[i] = UINT64_MAX;
  for (int run = 2; run <= size; run *= 2) {
    for (int step = run / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int i = threadIdx.x; i < size / 2; i += kDrawThreads) {
        const int low = 2 * i - (i & (step - 1)), high = low + step;
        const bool up = (low & run) == 0;
        const uint64_t a = values[low], b = values[high];
        if ((a > b) == up) {
          values[low] = b;
          values[high] = a;
        }
      }
    }
  }
  __syncthreads();
}

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_SAMPLING_SAMPLING_PRIMITIVES_CUH_
