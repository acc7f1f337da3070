#include <algorithm>

#include "model/cuda/copy_rows.h"
#include "model/cuda/dispatch.cuh"

namespace tritonrl {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 2048;  // of a matrix
constexpr int64_t kPack = sizeof(uint4);

// grid.y: the matrices. A thread takes every gridDim.x * kThreads-th pack of one.
__global__ void __launch_bounds__(kThreads)
    CopyRowsKernel(RowCopies copies, int64_t present, int64_t rows) {
  const RowCopy copy = copies.copies[blockIdx.y];
  const int64_t packs = copy.row / kPack;
  const int64_t from_stride = copy.from_stride / kPack, to_stride = copy.to_stride / kPack;
  const auto* from = static_cast<const uint4*>(copy.from);
  auto* to = static_cast<uint4*>(copy.to);
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < rows * packs;
       i += int64_t{gridDim.x} * kThreads) {
    const int64_t row = i / packs, pack = i % packs;
    to[row * to_stride + pack] =
        row < present ? from[row * from_stride + pack] : make_uint4(0, 0, 0, 0);
  }
}

}  // namespace

void LaunchCopyRows(const RowCopies& copies, int64_t present, int64_t rows, void* stream) {
  int64_t packs = 0;
  for (int i = 0; i < copies.count; ++i)
    packs = std::max(packs, rows * copies.copies[i].row / kPack);
  if (packs == 0) return;
  const dim3 grid(std::min(kMostBlocks, (packs + kThreads - 1) / kThreads), copies.count);
  CopyRowsKernel<<<grid, kThreads, 0, StreamOf(stream)>>>(copies, present, rows);
  CheckLaunch("copies of rows");
}

}  // namespace tritonrl
