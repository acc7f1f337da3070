#include <c10/util/Exception.h>

#include "model/cuda/dispatch.cuh"
#include "model/cuda/heads.cuh"
#include "model/cuda/programmatic.cuh"
#include "rollout/cuda/merge_parts.h"

namespace tritonrl {
namespace {

using Element = __nv_bfloat16;

constexpr int kWarps = 8;

__device__ float WarpMax(float x) {
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
  return x;
}

// Block (row, head): its warps take parts in turn, several reads of each under way.
template <int kEach>
__global__ void __launch_bounds__(kWarps * 32) MergePartsKernel(PartsMerge at) {
  constexpr int kDim = 32 * kEach;
  __shared__ __align__(16) float sums[kWarps][kDim];
  __shared__ float weights[kWarps];
  LetNextKernelBegin();
  const int row = blockIdx.x, head = blockIdx.y, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int first = at.begins[row], last = at.begins[row + 1];
  WaitForEarlierKernels();  // tables are older
  float most = -INFINITY;
  for (int part = first + lane; part < last; part += 32) {
    most = fmaxf(most, at.lses[int64_t{part} * at.heads + head]);
  }
  most = WarpMax(most);
  float sum[kEach] = {}, weight = 0;
#pragma unroll 4
  for (int part = first + warp; part < last; part += kWarps) {
    const int64_t place = int64_t{part} * at.heads + head;
    const float share = exp2f(at.lses[place] - most);
    float x[kEach];
    LoadLane<Element, kEach>(static_cast<const Element*>(at.parts) + place * kDim, x);
#pragma unroll
    for (int i = 0; i < kEach; ++i) sum[i] += share * x[i];
    weight += share;
  }
  if (lane == 0) weights[warp] = weight;
  StoreLane<float, kEach>(sum, sums[warp]);
  __syncthreads();
  if (warp > 0) return;
  float total = weight;
  for (int other = 1; other < kWarps; ++other) {
    float x[kEach];
    LoadLane<float, kEach>(sums[other], x);
#pragma unroll
    for (int i = 0; i < kEach; ++i) sum[i] += x[i];
    total += weights[other];
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) sum[i] = total > 0 ? sum[i] / total : 0.0f;
  const int64_t to = int64_t{row} * at.heads + head;
  StoreLane<Element, kEach>(sum, static_cast<Element*>(at.out) + to * kDim);
}

}  // namespace

void LaunchMergeParts(const PartsMerge& at) {
  TORCH_CHECK(at.dim == 64 || at.dim == 128, "parts of attention with heads of ", at.dim,
              " elements: 64 or 128 are taken");
  if (at.rows == 0) return;
  const auto kernel = at.dim == 64 ? MergePartsKernel<2> : MergePartsKernel<4>;
  const cudaError_t error = LaunchProgrammatic(at.overlap, kernel, dim3(at.rows, at.heads),
                                               dim3(kWarps * 32), 0, StreamOf(at.stream), at);
  TORCH_CHECK(error == cudaSuccess, "parts of attention: ", cudaGetErrorString(error));
}

}  // namespace tritonrl
