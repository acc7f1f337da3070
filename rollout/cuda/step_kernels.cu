#include <c10/util/Exception.h>
#include <cuda_fp8.h>

#include "model/cuda/common/ptx.cuh"
#include "model/cuda/fused/dispatch.cuh"
#include "model/cuda/fused/rotary.cuh"
#include "rollout/cuda/step_kernels.h"

namespace tritonrl {

namespace {

constexpr int kUpdateThreads = 256;

__global__ void __launch_bounds__(kUpdateThreads)
    ScatterWordsKernel(const int32_t* pairs, int count, int32_t* words) {
  const int i = static_cast<int>(blockIdx.x) * kUpdateThreads + static_cast<int>(threadIdx.x);
  if (i < count) words[pairs[2 * i]] = pairs[2 * i + 1];
}

}  // namespace

void LaunchScatterWords(const int32_t* pairs, int count, int32_t* words, void* stream) {
  if (count == 0) return;
  ScatterWordsKernel<<<(count + kUpdateThreads - 1) / kUpdateThreads, kUpdateThreads, 0,
                       StreamOf(stream)>>>(pairs, count, words);
  CheckLaunch("update of page tables");
}

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

namespace {

using Element = __nv_bfloat16;

constexpr int kWarps = 8;

// Stores a lane's elements of a head in the cache.
template <int kEach>
__device__ void StoreCached(const float* from, __nv_bfloat16* head) {
  StoreLane<Element, kEach>(from, head);
}
template <int kEach>
__device__ void StoreCached(const float* from, __nv_fp8_e4m3* head) {
  Lane<__nv_fp8_storage_t, kEach> lane;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    // Rounds to bf16 first, so that the learner and the CPU can reproduce the result.
    const float rounded = ToFloat(RoundTo<Element>(from[k]));
    lane.values[k] = __nv_cvt_float_to_fp8(rounded, __NV_SATFINITE, __NV_E4M3);
  }
  reinterpret_cast<Lane<__nv_fp8_storage_t, kEach>*>(head)[threadIdx.x % 32] = lane;
}

// Warp w of block (row, y) computes head 8 y + w of the row's H query, K key and K value heads.
template <int kEach, typename Cached>
__global__ void __launch_bounds__(kWarps * 32) QkvToCacheKernel(QkvToCache at) {
  constexpr int kDim = kEach * 32;
  TriggerDependentLaunch();
  const int queries = at.shape.query_heads, keys = at.shape.key_heads;
  const int64_t row = blockIdx.x;
  const int head = blockIdx.y * kWarps + threadIdx.x / 32;
  if (head >= queries + 2 * keys) return;
  const Element* from =
      static_cast<const Element*>(at.qkv) + (row * (queries + 2 * keys) + head) * kDim;
  const int64_t slot = at.page_slots[row];
  const RotaryFactors<kEach> turn(at.cos, at.sin, at.positions[row]);
  GridDependencySync();  // the tables read above are older than the preceding kernel
  if (head >= queries && slot < 0) return;
  float x[kEach];
  LoadLane<Element, kEach>(from, x);
  if (head >= queries + keys) {
    const int64_t value = slot * keys + head - queries - keys;
    StoreCached<kEach>(x, static_cast<Cached*>(at.values) + value * kDim);
    return;
  }
  const void* weight = head < queries ? at.q_weight : at.k_weight;
  if (weight != nullptr) {
    NormLane<Element, kEach>(static_cast<const Element*>(weight), at.eps, x);
  }
  turn.Apply(1.0f, x);
  if (head < queries) {
    StoreLane<Element, kEach>(x, static_cast<Element*>(at.queries) + (row * queries + head) * kDim);
  } else {
    StoreCached<kEach>(x, static_cast<Cached*>(at.keys) + (slot * keys + head - queries) * kDim);
  }
}

}  // namespace

void LaunchQkvToCache(const QkvToCache& at) {
  TORCH_CHECK(at.shape.head_dim == 64 || at.shape.head_dim == 128, "heads of ", at.shape.head_dim,
              " elements: 64 or 128 are taken");
  if (at.rows == 0) return;
  const int heads = at.shape.query_heads + 2 * at.shape.key_heads;
  const dim3 grid(at.rows, (heads + kWarps - 1) / kWarps);
  const bool small = at.shape.head_dim == 64;
  auto* const kernel =
      at.shape.type == CacheType::kE4M3
          ? (small ? QkvToCacheKernel<2, __nv_fp8_e4m3> : QkvToCacheKernel<4, __nv_fp8_e4m3>)
          : (small ? QkvToCacheKernel<2, Element> : QkvToCacheKernel<4, Element>);
  const cudaError_t error =
      LaunchWithPdl(at.overlap, kernel, grid, dim3(kWarps * 32), 0, StreamOf(at.stream), at);
  TORCH_CHECK(error == cudaSuccess, "keys and values into the cache: ", cudaGetErrorString(error));
}

}  // namespace tritonrl
