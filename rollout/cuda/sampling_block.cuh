// Sums, searches and sorting within a block of kDrawThreads threads. All threads of the block call
// each function; what is returned is the same for all of them unless said otherwise.
#ifndef TRITONRL_ROLLOUT_CUDA_SAMPLING_BLOCK_CUH_
#define TRITONRL_ROLLOUT_CUDA_SAMPLING_BLOCK_CUH_

#include <climits>
#include <cstdint>

namespace tritonrl {

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

// The sum of x over this thread and those before it, in an order that is always the same.
template <typename T>
__device__ T BlockScan(T x, T* total) {
  __shared__ T sums[kDrawWarps];
  const int warp = threadIdx.x / 32;
  x = WarpScan(x);
  __syncthreads();  // the sums of the call before have been read
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

// prefix[i] = of(0) + ... + of(i) for i in [0, n); prefix is shared memory and may be what `of`
// reads. Returns the sum of all.
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

// Sorts values[0, n) of shared memory, the lowest first, by a bitonic network; there is room up to
// the next power of two, which is overwritten. Begins and ends with the block in step.
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

#endif  // TRITONRL_ROLLOUT_CUDA_SAMPLING_BLOCK_CUH_
