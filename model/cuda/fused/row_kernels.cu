#include <algorithm>

#include "model/cuda/fused/dispatch.cuh"
#include "model/cuda/fused/kernels.h"
#include "model/cuda/fused/row_ops.cuh"

namespace tritonrl {

namespace {

constexpr int kCopyThreads = 256;
constexpr int64_t kMaxCopyBlocks = 2048;  // per matrix
constexpr int64_t kCopyPackBytes = sizeof(uint4);

// blockIdx.y selects the matrix; a thread copies every (gridDim.x * kCopyThreads)-th pack of it.
__global__ void __launch_bounds__(kCopyThreads)
    CopyRowsKernel(RowCopies copies, int64_t present, int64_t rows) {
  const RowCopy copy = copies.copies[blockIdx.y];
  const int64_t packs = copy.row / kCopyPackBytes;
  const int64_t from_stride = copy.from_stride / kCopyPackBytes,
                to_stride = copy.to_stride / kCopyPackBytes;
  const auto* from = static_cast<const uint4*>(copy.from);
  auto* to = static_cast<uint4*>(copy.to);
  for (int64_t i = blockIdx.x * int64_t{kCopyThreads} + threadIdx.x; i < rows * packs;
       i += int64_t{gridDim.x} * kCopyThreads) {
    const int64_t row = i / packs, pack = i % packs;
    to[row * to_stride + pack] =
        row < present ? from[row * from_stride + pack] : make_uint4(0, 0, 0, 0);
  }
}

}  // namespace

void LaunchCopyRows(const RowCopies& copies, int64_t present, int64_t rows, void* stream) {
  int64_t packs = 0;
  for (int i = 0; i < copies.count; ++i)
    packs = std::max(packs, rows * copies.copies[i].row / kCopyPackBytes);
  if (packs == 0) return;
  const dim3 grid(std::min(kMaxCopyBlocks, (packs + kCopyThreads - 1) / kCopyThreads),
                  copies.count);
  CopyRowsKernel<<<grid, kCopyThreads, 0, StreamOf(stream)>>>(copies, present, rows);
  CheckLaunch("copies of rows");
}

namespace {

constexpr int kEmbeddingThreads = 128;

// One block per position of the sorted order. The block at a token's first position sums all rows
// of the token; the other blocks return.
template <typename T>
__global__ void __launch_bounds__(kEmbeddingThreads)
    EmbeddingBackwardKernel(int64_t rows, int64_t cols, const int64_t* sorted, const int64_t* order,
                            const T* d_out, float* d_table) {
  constexpr int kSize = Pack<T>::kSize;
  const int64_t begin = blockIdx.x, token = sorted[begin];
  if (begin > 0 && sorted[begin - 1] == token) return;
  for (int64_t i = threadIdx.x; i < cols / kSize; i += kEmbeddingThreads) {
    float sums[kSize] = {};
    for (int64_t at = begin; at < rows && sorted[at] == token; ++at) {
      const Pack<T> d = Load(d_out + order[at] * cols, i);
#pragma unroll
      for (int k = 0; k < kSize; ++k) sums[k] += ToFloat(d.values[k]);
    }
#pragma unroll
    for (int k = 0; k < kSize; ++k) d_table[token * cols + i * kSize + k] += sums[k];
  }
}

}  // namespace

void LaunchEmbeddingBackward(const CudaRows& at, const int64_t* sorted, const int64_t* order,
                             const void* d_out, float* d_table) {
  if (at.rows == 0) return;
  ForType(at.type, [&]<typename T>() {
    EmbeddingBackwardKernel<T><<<at.rows, kEmbeddingThreads, 0, StreamOf(at.stream)>>>(
        at.rows, at.cols, sorted, order, static_cast<const T*>(d_out), d_table);
  });
  CheckLaunch("backward of the embedding");
}

namespace {

// One block per 32 columns: warp w sums rows w, w + 8, ..., then warp 0 adds the eight sums.
__global__ void __launch_bounds__(256)
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

}  // namespace

void LaunchColumnSums(int64_t rows, int64_t cols, int64_t stride, const float* from, float* to,
                      void* stream) {
  ColumnSumsKernel<<<(cols + 31) / 32, 256, 0, StreamOf(stream)>>>(rows, cols, stride, from, to);
  CheckLaunch("sum of columns");
}

}  // namespace tritonrl
