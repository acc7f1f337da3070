// Rows to fp8 numbers with a factor each: as they are, or what a norm or SwiGLU makes of them, in
// the same launch.
#include "model/cuda/amax.cuh"
#include "model/cuda/dispatch.cuh"
#include "model/cuda/element.cuh"
#include "model/cuda/fp8_convert.cuh"
#include "model/cuda/kernels.h"
#include "model/cuda/rms.cuh"

namespace tritonrl {
namespace {

using Element = __nv_bfloat16;
using Eight = Pack<Element>;

constexpr int kThreads = kRmsThreads;  // for the norm's order of sums

struct PlainRow {
  const Element* x;
  __device__ void Begin(int64_t packs, float*) { x += blockIdx.x * packs * Eight::kSize; }
  __device__ Eight At(int i) const { return Load(x, i); }
};

// The bits of RmsNormKernel.
struct NormedRow {
  const Element *x, *weight;
  float eps;
  float inverse;
  __device__ void Begin(int64_t packs, float* room) {
    const int64_t cols = packs * Eight::kSize;
    x += blockIdx.x * cols;
    float sum = 0;
    for (int i = threadIdx.x; i < packs; i += kThreads) AddSquares(Load(x, i), &sum);
    inverse = InverseRms(BlockSum(sum, room), cols, eps);
  }
  __device__ Eight At(int i) const { return Normed(Load(x, i), Load(weight, i), inverse); }
};

// Those of SwigluKernel.
struct GatedRow {
  const Element* gate;
  const Element* up;
  __device__ void Begin(int64_t packs, float*) {
    gate += blockIdx.x * 2 * packs * Eight::kSize;
    up = gate + packs * Eight::kSize;
  }
  __device__ Eight At(int i) const {
    Eight a = Load(gate, i);
    const Eight b = Load(up, i);
#pragma unroll
    for (int k = 0; k < Eight::kSize; ++k) a.values[k] = GatedBySilu(a.values[k], b.values[k]);
    return a;
  }
};

// A block a row, which finds it in the cache when it comes again.
template <typename Row>
__global__ void __launch_bounds__(kThreads)
    EachRowKernel(Row row, int64_t packs, float* scale, uint2* __restrict__ numbers) {
  __shared__ float room[32];
  __shared__ uint32_t amax_room[32];
  __shared__ uint32_t most;
  if (threadIdx.x == 0) most = 0;
  row.Begin(packs, room);
  __syncthreads();
  Amax<Element> amax;
  for (int i = threadIdx.x; i < packs; i += kThreads) TakeAmax(row.At(i), &amax);
  RaiseToBlock(amax, amax_room, &most);
  __syncthreads();
  const Scales<Fp8Format::kE4M3> scales(most);
  if (threadIdx.x == 0) scale[blockIdx.x] = scales.scale;
  numbers += blockIdx.x * packs;
  for (int i = threadIdx.x; i < packs; i += kThreads) {
    const Eight a = row.At(i);
    numbers[i] = Convert8<Fp8Format::kE4M3>(*reinterpret_cast<const uint4*>(&a), scales.inverse);
  }
}

template <typename Row>
void Launch(const CudaRows& at, const Row& row, void* numbers, float* scales) {
  if (at.rows == 0) return;
  EachRowKernel<<<at.rows, kThreads, 0, StreamOf(at.stream)>>>(row, at.cols / Eight::kSize, scales,
                                                               static_cast<uint2*>(numbers));
  CheckLaunch("fp8 rows");
}

const Element* Elements(const void* data) { return static_cast<const Element*>(data); }

}  // namespace

void LaunchQuantizeRows(const CudaRows& at, const void* x, void* numbers, float* scales) {
  Launch(at, PlainRow{Elements(x)}, numbers, scales);
}

void LaunchNormQuantizeRows(const CudaRows& at, const void* x, const void* weight, float eps,
                            void* numbers, float* scales) {
  Launch(at, NormedRow{Elements(x), Elements(weight), eps, 0}, numbers, scales);
}

void LaunchSwigluQuantizeRows(const CudaRows& at, const void* gate_up, void* numbers,
                              float* scales) {
  Launch(at, GatedRow{Elements(gate_up), nullptr}, numbers, scales);
}

}  // namespace tritonrl
