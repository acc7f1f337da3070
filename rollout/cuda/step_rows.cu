#include <c10/util/Exception.h>

#include "model/cuda/dispatch.cuh"
#include "rollout/cuda/step_kernels.h"

namespace tritonrl {
namespace {

constexpr int kThreads = 256;

// A block for each row.
__global__ void __launch_bounds__(kThreads) GatherRowsKernel(RowGather at) {
  const int64_t row = blockIdx.x, packs = at.row_bytes / 16;
  int64_t id = at.through == nullptr ? row : at.through[row];
  if (id >= 0) id = at.ids[id];
  const uint4* from = static_cast<const uint4*>(at.from) + id * packs;
  uint4* to = static_cast<uint4*>(at.out) + row * packs;
  for (int64_t i = threadIdx.x; i < packs; i += kThreads) {
    to[i] = id < 0 ? uint4{0, 0, 0, 0} : from[i];
  }
}

// A block for each pair of pages and pool.
__global__ void __launch_bounds__(kThreads) CopyPagesKernel(CopyPages at) {
  const int64_t from = at.pairs[2 * blockIdx.x], to = at.pairs[2 * blockIdx.x + 1];
  if (from < 0 || to < 0) return;
  const int64_t packs = at.page_bytes / 16;
  uint4* pool = static_cast<uint4*>(at.pools[blockIdx.y]);
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < packs; i += kThreads) {
    pool[to * packs + i] = pool[from * packs + i];
  }
}

}  // namespace

void LaunchGatherRows(const RowGather& at) {
  TORCH_CHECK(at.row_bytes % 16 == 0, "rows of ", at.row_bytes,
              " bytes: a multiple of 16 is taken");
  if (at.rows == 0) return;
  GatherRowsKernel<<<at.rows, kThreads, 0, StreamOf(at.stream)>>>(at);
  CheckLaunch("gathering of rows");
}

void LaunchCopyPages(const CopyPages& at) {
  TORCH_CHECK(at.page_bytes % 16 == 0, "pages of ", at.page_bytes, " bytes");
  if (at.pairs_count == 0 || at.pools_count == 0) return;
  CopyPagesKernel<<<dim3(at.pairs_count, at.pools_count), kThreads, 0, StreamOf(at.stream)>>>(at);
  CheckLaunch("copies of pages");
}

}  // namespace tritonrl
