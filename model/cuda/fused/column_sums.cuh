// Sums of partial sums, in the order of their rows.
#ifndef TRITONRL_MODEL_CUDA_FUSED_COLUMN_SUMS_CUH_
#define TRITONRL_MODEL_CUDA_FUSED_COLUMN_SUMS_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "model/cuda/fused/dispatch.cuh"

namespace tritonrl {

// A block takes 32 columns: warp w the rows w, w + 8, ..., then warp 0 adds the eight.
static __global__ void __launch_bounds__(256)
    ColumnSumsKernel(int64_t rows, int64_t cols, int64_t stride, const float* from, float* to) {
  __shared__ float room[8][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t col = blockIdx.x * 32 + lane;
  float sum = 0;
  if (col < cols) {
    for (int64_t row = warp; row < rows; row += 8) sum += from[row * stride + col];
  }
  room[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || col >= cols) return;
  for (int i = 1; i < 8; ++i) sum += room[i][lane];
  to[col] += sum;
}

// to[c] += sum over rows of from[row * stride + c].
inline void AddColumnSums(int64_t rows, int64_t cols, int64_t stride, const float* from, float* to,
                          cudaStream_t stream) {
  ColumnSumsKernel<<<(cols + 31) / 32, 256, 0, stream>>>(rows, cols, stride, from, to);
  CheckLaunch("sum of columns");
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_FUSED_COLUMN_SUMS_CUH_
