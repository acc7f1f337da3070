#include <c10/util/Exception.h>

#include "model/cuda/fused/dispatch.cuh"
#include "model/cuda/fused/fp8.cuh"
#include "model/cuda/fused/kernels.h"
#include "model/cuda/fused/row_ops.cuh"

namespace tritonrl {
namespace {

constexpr int kThreads = kRmsThreads;
// Blocks of the backward, the same number on every GPU because the order of sums depends on it.
constexpr int64_t kBlocks = 512;

// One block per row; the second pass finds the row in the cache.
template <typename T, bool kRstdKnown, bool kAmax>
__global__ void __launch_bounds__(kThreads)
    RmsNormKernel(const T* x, const T* weight, float eps, int64_t cols, T* y, float* rstd,
                  uint32_t* amax) {
  __shared__ float room[32];
  __shared__ uint32_t amax_room[32];
  Amax<T> most;
  const int64_t row = blockIdx.x;
  const int packs = static_cast<int>(cols / Pack<T>::kSize);
  x += row * cols;
  y += row * cols;
  float inverse;
  if constexpr (kRstdKnown) {
    inverse = rstd[row];
  } else {
    float sum = 0;
    for (int i = threadIdx.x; i < packs; i += kThreads) AddSquares(Load(x, i), &sum);
    inverse = InverseRms(BlockSum(sum, room), cols, eps);
    if (threadIdx.x == 0) rstd[row] = inverse;
  }
  for (int i = threadIdx.x; i < packs; i += kThreads) {
    const Pack<T> a = ApplyRmsNorm(Load(x, i), Load(weight, i), inverse);
    Store(a, y, i);
    if constexpr (kAmax) UpdateAmax(a, &most);
  }
  if constexpr (kAmax) BlockAtomicMax(most, amax_room, amax);
}

// A block handles consecutive rows; a thread sums d_weight of its columns in registers. Four blocks
// fit on a multiprocessor, so Hopper's 132 run all kBlocks at once.
template <typename T, int kPacks, bool kAmax>
__global__ void __launch_bounds__(kThreads, kPacks <= 2 ? 4 : 1)
    RmsNormBackwardKernel(int64_t rows, int64_t rows_each, int64_t cols, const T* x,
                          const T* weight, const float* rstd, const T* d_y, T* d_x, float* partials,
                          uint32_t* amax) {
  constexpr int kSize = Pack<T>::kSize;
  __shared__ float room[2][32];
  __shared__ uint32_t amax_room[32];
  Amax<T> most;
  const int packs = static_cast<int>(cols / kSize);
  float sums[kPacks][kSize] = {};
  const int64_t begin = blockIdx.x * rows_each, end = min(rows, begin + rows_each);
  for (int64_t row = begin; row < end; ++row) {
    const float inverse = rstd[row];
    // All loads of the row are issued before the sum over the block is needed.
    Pack<T> a[kPacks], d[kPacks], to[kPacks];
    float dot = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int i = threadIdx.x + p * kThreads;
      if (i >= packs) continue;
      a[p] = Load(x + row * cols, i);
      d[p] = Load(d_y + row * cols, i);
      to[p] = Load(d_x + row * cols, i);
      const Pack<T> w = Load(weight, i);
#pragma unroll
      for (int k = 0; k < kSize; ++k) {
        const float hat = ToFloat(a[p].values[k]) * inverse, g = ToFloat(d[p].values[k]);
        sums[p][k] += g * hat;
        dot += g * ToFloat(w.values[k]) * hat;
      }
    }
    // Successive rows alternate between two buffers, as a slow warp may still read the previous
    // row's buffer.
    const float mean = BlockSum(dot, room[row & 1]) / static_cast<float>(cols);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int i = threadIdx.x + p * kThreads;
      if (i >= packs) continue;
      const Pack<T> w = Load(weight, i);
#pragma unroll
      for (int k = 0; k < kSize; ++k) {
        const float hat = ToFloat(a[p].values[k]) * inverse;
        const float g = ToFloat(d[p].values[k]) * ToFloat(w.values[k]);
        to[p].values[k] = RoundTo<T>(ToFloat(to[p].values[k]) + (g - hat * mean) * inverse);
      }
      Store(to[p], d_x + row * cols, i);
      if constexpr (kAmax) UpdateAmax(to[p], &most);
    }
  }
  if constexpr (kAmax) BlockAtomicMax(most, amax_room, amax);
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const int i = threadIdx.x + p * kThreads;
    if (i >= packs) continue;
#pragma unroll
    for (int k = 0; k < kSize; ++k) partials[blockIdx.x * cols + i * kSize + k] = sums[p][k];
  }
}

// Returns the kernel for rows of at most `packs` packs per thread.
template <typename T, bool kAmax>
auto BackwardKernel(int64_t packs) {
  return packs <= 1   ? RmsNormBackwardKernel<T, 1, kAmax>
         : packs <= 2 ? RmsNormBackwardKernel<T, 2, kAmax>
         : packs <= 4 ? RmsNormBackwardKernel<T, 4, kAmax>
                      : RmsNormBackwardKernel<T, 8, kAmax>;
}

}  // namespace

void LaunchRmsNorm(const CudaRows& at, const void* x, const void* weight, float eps, void* y,
                   float* rstd, uint32_t* amax, bool rstd_known) {
  if (at.rows == 0) return;
  ForType(at.type, [&]<typename T>() {
    const auto computes =
        amax == nullptr ? RmsNormKernel<T, false, false> : RmsNormKernel<T, false, true>;
    const auto reads =
        amax == nullptr ? RmsNormKernel<T, true, false> : RmsNormKernel<T, true, true>;
    const auto kernel = rstd_known ? reads : computes;
    kernel<<<at.rows, kThreads, 0, StreamOf(at.stream)>>>(static_cast<const T*>(x),
                                                          static_cast<const T*>(weight), eps,
                                                          at.cols, static_cast<T*>(y), rstd, amax);
  });
  CheckLaunch("RMSNorm");
}

int64_t RmsNormPartials(const CudaRows& at) { return std::min(kBlocks, at.rows); }

void LaunchRmsNormBackward(const CudaRows& at, const void* x, const void* weight, const float* rstd,
                           const void* d_y, void* d_x, float* partials, float* d_weight,
                           uint32_t* amax) {
  if (at.rows == 0) return;
  const int64_t blocks = RmsNormPartials(at);
  ForType(at.type, [&]<typename T>() {
    const int64_t packs = (at.cols / Pack<T>::kSize + kThreads - 1) / kThreads;
    TORCH_CHECK(packs <= 8, "RMSNorm of ", at.cols, " columns: at most 8192 are supported");
    const auto kernel =
        amax == nullptr ? BackwardKernel<T, false>(packs) : BackwardKernel<T, true>(packs);
    kernel<<<blocks, kThreads, 0, StreamOf(at.stream)>>>(
        at.rows, (at.rows + blocks - 1) / blocks, at.cols, static_cast<const T*>(x),
        static_cast<const T*>(weight), rstd, static_cast<const T*>(d_y), static_cast<T*>(d_x),
        partials, amax);
  });
  CheckLaunch("backward of RMSNorm");
  LaunchColumnSums(blocks, at.cols, at.cols, partials, d_weight, at.stream);
}

}  // namespace tritonrl
