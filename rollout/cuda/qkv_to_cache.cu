#include <c10/util/Exception.h>
#include <cuda_fp8.h>

#include "model/cuda/dispatch.cuh"
#include "model/cuda/heads.cuh"
#include "model/cuda/programmatic.cuh"
#include "rollout/cuda/step_kernels.h"

namespace tritonrl {
namespace {

using Element = __nv_bfloat16;

constexpr int kWarps = 8;

// A lane's elements of a head to the cache.
template <int kEach>
__device__ void StoreCached(const float* from, __nv_bfloat16* head) {
  StoreLane<Element, kEach>(from, head);
}
template <int kEach>
__device__ void StoreCached(const float* from, __nv_fp8_e4m3* head) {
  Lane<__nv_fp8_storage_t, kEach> lane;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    // From bf16, as if it had been kept in that: the learner and the CPU can do the same.
    const float rounded = ToFloat(Rounded<Element>(from[k]));
    lane.values[k] = __nv_cvt_float_to_fp8(rounded, __NV_SATFINITE, __NV_E4M3);
  }
  reinterpret_cast<Lane<__nv_fp8_storage_t, kEach>*>(head)[threadIdx.x % 32] = lane;
}

// Warp w of block (row, y) takes head 8 y + w of the row's H query, K key and K value heads.
template <int kEach, typename Cached>
__global__ void __launch_bounds__(kWarps * 32) QkvToCacheKernel(QkvToCache at) {
  constexpr int kDim = kEach * 32;
  LetNextKernelBegin();
  const int queries = at.shape.query_heads, keys = at.shape.key_heads;
  const int64_t row = blockIdx.x;
  const int head = blockIdx.y * kWarps + threadIdx.x / 32;
  if (head >= queries + 2 * keys) return;
  const Element* from =
      static_cast<const Element*>(at.qkv) + (row * (queries + 2 * keys) + head) * kDim;
  const int64_t slot = at.page_slots[row];
  const Turn<kEach> turn(at.cos, at.sin, at.positions[row]);
  WaitForEarlierKernels();  // tables are older
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
      LaunchProgrammatic(at.overlap, kernel, grid, dim3(kWarps * 32), 0, StreamOf(at.stream), at);
  TORCH_CHECK(error == cudaSuccess, "keys and values into the cache: ", cudaGetErrorString(error));
}

}  // namespace tritonrl
