#include <c10/util/Exception.h>

#include "model/cuda/dispatch.cuh"
#include "model/cuda/heads.cuh"
#include "model/cuda/programmatic.cuh"
#include "rollout/cuda/step_kernels.h"

namespace tritonrl {
namespace {

using Element = __nv_bfloat16;

constexpr int kWarps = 8;

// Warp w of block (row, y) takes head 8 y + w of the row's H query, K key and K value heads.
template <int kEach>
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
    StoreLane<Element, kEach>(x, static_cast<Element*>(at.values) + value * kDim);
    return;
  }
  const void* weight = head < queries ? at.q_weight : at.k_weight;
  if (weight != nullptr) {
    NormLane<Element, kEach>(static_cast<const Element*>(weight), at.eps, x);
  }
  turn.Apply(1.0f, x);
  Element* to = head < queries
                    ? static_cast<Element*>(at.queries) + (row * queries + head) * kDim
                    : static_cast<Element*>(at.keys) + (slot * keys + head - queries) * kDim;
  StoreLane<Element, kEach>(x, to);
}

}  // namespace

void LaunchQkvToCache(const QkvToCache& at) {
  TORCH_CHECK(at.shape.head_dim == 64 || at.shape.head_dim == 128, "heads of ", at.shape.head_dim,
              " elements: 64 or 128 are taken");
  if (at.rows == 0) return;
  const int heads = at.shape.query_heads + 2 * at.shape.key_heads;
  const dim3 grid(at.rows, (heads + kWarps - 1) / kWarps);
  const auto kernel = at.shape.head_dim == 64 ? QkvToCacheKernel<2> : QkvToCacheKernel<4>;
  const cudaError_t error =
      LaunchProgrammatic(at.overlap, kernel, grid, dim3(kWarps * 32), 0, StreamOf(at.stream), at);
  TORCH_CHECK(error == cudaSuccess, "keys and values into the cache: ", cudaGetErrorString(error));
}

}  // namespace tritonrl
