#include <algorithm>

#include "model/cuda/common/fp8_format.h"
#include "model/cuda/fused/dispatch.cuh"
#include "model/cuda/fused/fp8.cuh"
#include "model/cuda/fused/kernels.h"
#include "model/cuda/fused/row_ops.cuh"

// Quantizes bf16 matrices to FP8. With one scale per matrix, one pass writes the row-major and the
// transposed copy, because Hopper's FP8 GEMMs need the summed dimension of both operands
// contiguous. With one scale per row, the kernel is fused with RMSNorm or SwiGLU.

namespace tritonrl {

namespace {

constexpr int kThreads = 256;
constexpr int kWave = 1024;  // blocks of a grid-stride launch: a large GPU runs about 1,024 at once
constexpr int kTile = 128;   // rows and columns of a block's tile

__global__ void __launch_bounds__(kThreads)
    AmaxKernel(int64_t packs, const uint4* __restrict__ x, uint32_t* amax) {
  __shared__ uint32_t room[32];
  Amax<__nv_bfloat16> most;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (; i + 3 * step < packs; i += 4 * step) {  // four loads in flight
    const uint4 a = x[i], b = x[i + step], c = x[i + 2 * step], d = x[i + 3 * step];
    most.Take(a);
    most.Take(b);
    most.Take(c);
    most.Take(d);
  }
  for (; i < packs; i += step) most.Take(x[i]);
  BlockAtomicMax(most, room, amax);
}

// Writes the row-major output only; a thread converts 16 elements per iteration.
template <Fp8Format kFormat>
__global__ void __launch_bounds__(kThreads)
    RowsKernel(int64_t pieces, const uint4* __restrict__ x, const uint32_t* amax, float* scale,
               uint4* __restrict__ rows) {
  const Scales<kFormat> scales(*amax);
  if (blockIdx.x == 0 && threadIdx.x == 0) *scale = scales.scale;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
#pragma unroll 2
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < pieces;
       i += step) {
    const uint4 a = x[2 * i], b = x[2 * i + 1];
    const uint2 low = Convert8<kFormat>(a, scales.inverse);
    const uint2 high = Convert8<kFormat>(b, scales.inverse);
    rows[i] = make_uint4(low.x, low.y, high.x, high.y);
  }
}

// Transposes 4 x 4 bytes: each word of `row` holds a row, each word of `columns` a column.
__device__ void Transpose4(const uint32_t (&row)[4], uint32_t* columns) {
  const uint32_t low01 = __byte_perm(row[0], row[1], 0x5140);
  const uint32_t high01 = __byte_perm(row[0], row[1], 0x7362);
  const uint32_t low23 = __byte_perm(row[2], row[3], 0x5140);
  const uint32_t high23 = __byte_perm(row[2], row[3], 0x7362);
  columns[0] = __byte_perm(low01, low23, 0x5410);
  columns[1] = __byte_perm(low01, low23, 0x7632);
  columns[2] = __byte_perm(high01, high23, 0x5410);
  columns[3] = __byte_perm(high01, high23, 0x7632);
}

// One block per tile. A thread reads 8 columns of 4 rows and stores, for each column, one word of
// its 4 rows in the tile. Column c owns words 32 c to 32 c + 31 as 8 quads, which are XOR-swizzled
// by c / 8, so that neither the writes (8 packs of columns times 4 groups of rows per warp) nor the
// reads (8 quads of a column per quarter warp) have bank conflicts. Elements of to_columns from
// `rows` to `padded` are zeros.
template <Fp8Format kFormat, bool kRows>
__global__ void __launch_bounds__(kThreads)
    TransposeKernel(int64_t rows, int64_t cols, int64_t padded, const uint16_t* __restrict__ x,
                    const uint32_t* amax, float* scale, uint8_t* __restrict__ to_rows,
                    uint8_t* __restrict__ to_columns) {
  __shared__ alignas(16) uint32_t tile[kTile * kTile / 4];
  const Scales<kFormat> scales(*amax);
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *scale = scales.scale;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * kTile;
  const int64_t first_col = static_cast<int64_t>(blockIdx.x) * kTile;
  const int pack = lane % 8 + 8 * (warp % 2);
  const int64_t col = first_col + pack * 8;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int group = lane / 8 + 4 * (warp / 2) + 16 * half;
    uint4 read[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int64_t row = first_row + group * 4 + r;
      read[r] = row < rows && col < cols ? *reinterpret_cast<const uint4*>(x + row * cols + col)
                                         : make_uint4(0, 0, 0, 0);
    }
    uint32_t left[4], right[4], words[8];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const uint2 bytes = Convert8<kFormat>(read[r], scales.inverse);
      const int64_t row = first_row + group * 4 + r;
      if constexpr (kRows) {
        if (row < rows && col < cols) *reinterpret_cast<uint2*>(to_rows + row * cols + col) = bytes;
      }
      left[r] = bytes.x;
      right[r] = bytes.y;
    }
    Transpose4(left, words);
    Transpose4(right, words + 4);
    const int place = ((group / 4) ^ (pack % 8)) * 4 + group % 4;
#pragma unroll
    for (int j = 0; j < 8; ++j) tile[(pack * 8 + j) * 32 + place] = words[j];
  }
  __syncthreads();
#pragma unroll
  for (int i = threadIdx.x; i < kTile * 8; i += kThreads) {
    const int c = i / 8, quad = i % 8;
    const int64_t row = first_row + quad * 16;
    if (first_col + c >= cols || row >= padded) continue;
    *reinterpret_cast<uint4*>(to_columns + (first_col + c) * padded + row) =
        reinterpret_cast<const uint4*>(tile)[c * 8 + (quad ^ (c / 8 % 8))];
  }
}

int Wave(int64_t threads) {
  return static_cast<int>(std::min<int64_t>(kWave, (threads + kThreads - 1) / kThreads));
}

template <Fp8Format kFormat>
void LaunchQuantizeKernel(const CudaRows& at, const void* x, const uint32_t* amax,
                          const CudaFp8Outputs& to) {
  const cudaStream_t stream = StreamOf(at.stream);
  auto* const rows = static_cast<uint8_t*>(to.rows);
  auto* const columns = static_cast<uint8_t*>(to.columns);
  if (columns == nullptr) {
    const int64_t pieces = at.rows * at.cols / 16;
    RowsKernel<kFormat><<<Wave(pieces), kThreads, 0, stream>>>(
        pieces, static_cast<const uint4*>(x), amax, to.scale, reinterpret_cast<uint4*>(rows));
    return;
  }
  const dim3 grid((at.cols + kTile - 1) / kTile, (to.padded_rows + kTile - 1) / kTile);
  const auto kernel =
      rows == nullptr ? TransposeKernel<kFormat, false> : TransposeKernel<kFormat, true>;
  kernel<<<grid, kThreads, 0, stream>>>(at.rows, at.cols, to.padded_rows,
                                        static_cast<const uint16_t*>(x), amax, to.scale, rows,
                                        columns);
}

}  // namespace

void LaunchAmax(const CudaRows& at, const void* x, uint32_t* amax) {
  const int64_t packs = at.rows * at.cols / 8;
  if (packs == 0) return;
  AmaxKernel<<<Wave(packs), kThreads, 0, StreamOf(at.stream)>>>(packs, static_cast<const uint4*>(x),
                                                                amax);
  CheckLaunch("largest element");
}

void LaunchQuantize(const CudaRows& at, Fp8Format format, const void* x, const uint32_t* amax,
                    const CudaFp8Outputs& to) {
  if (at.rows == 0) return;
  const auto launch = format == Fp8Format::kE4M3 ? LaunchQuantizeKernel<Fp8Format::kE4M3>
                                                 : LaunchQuantizeKernel<Fp8Format::kE5M2>;
  launch(at, x, amax, to);
  CheckLaunch("fp8 copies");
}

namespace {

using Element = __nv_bfloat16;
using Eight = Pack<Element>;

constexpr int kRowThreads = kRmsThreads;  // keeps the order of sums of RmsNormKernel

struct PlainRow {
  const Element* x;
  __device__ void Begin(int64_t packs, float*) { x += blockIdx.x * packs * Eight::kSize; }
  __device__ Eight At(int i) const { return Load(x, i); }
};

// Computes RMSNorm with the same bits as RmsNormKernel.
struct RmsNormRow {
  const Element *x, *weight;
  float eps;
  float inverse;
  __device__ void Begin(int64_t packs, float* room) {
    const int64_t cols = packs * Eight::kSize;
    x += blockIdx.x * cols;
    float sum = 0;
    for (int i = threadIdx.x; i < packs; i += kRowThreads) AddSquares(Load(x, i), &sum);
    inverse = InverseRms(BlockSum(sum, room), cols, eps);
  }
  __device__ Eight At(int i) const { return ApplyRmsNorm(Load(x, i), Load(weight, i), inverse); }
};

// Computes SwiGLU with the same bits as SwigluKernel.
struct SwigluRow {
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
    for (int k = 0; k < Eight::kSize; ++k) a.values[k] = SiluMul(a.values[k], b.values[k]);
    return a;
  }
};

// One block per row; the second pass finds the row in the cache.
template <typename Row>
__global__ void __launch_bounds__(kRowThreads)
    EachRowKernel(Row row, int64_t packs, float* scale, uint2* __restrict__ numbers) {
  __shared__ float room[32];
  __shared__ uint32_t amax_room[32];
  __shared__ uint32_t most;
  if (threadIdx.x == 0) most = 0;
  row.Begin(packs, room);
  __syncthreads();
  Amax<Element> amax;
  for (int i = threadIdx.x; i < packs; i += kRowThreads) UpdateAmax(row.At(i), &amax);
  BlockAtomicMax(amax, amax_room, &most);
  __syncthreads();
  const Scales<Fp8Format::kE4M3> scales(most);
  if (threadIdx.x == 0) scale[blockIdx.x] = scales.scale;
  numbers += blockIdx.x * packs;
  for (int i = threadIdx.x; i < packs; i += kRowThreads) {
    const Eight a = row.At(i);
    numbers[i] = Convert8<Fp8Format::kE4M3>(*reinterpret_cast<const uint4*>(&a), scales.inverse);
  }
}

template <typename Row>
void LaunchQuantizeEachRow(const CudaRows& at, const Row& row, void* numbers, float* scales) {
  if (at.rows == 0) return;
  EachRowKernel<<<at.rows, kRowThreads, 0, StreamOf(at.stream)>>>(
      row, at.cols / Eight::kSize, scales, static_cast<uint2*>(numbers));
  CheckLaunch("fp8 rows");
}

const Element* Elements(const void* data) { return static_cast<const Element*>(data); }

}  // namespace

void LaunchQuantizeRows(const CudaRows& at, const void* x, void* numbers, float* scales) {
  LaunchQuantizeEachRow(at, PlainRow{Elements(x)}, numbers, scales);
}

void LaunchNormQuantizeRows(const CudaRows& at, const void* x, const void* weight, float eps,
                            void* numbers, float* scales) {
  LaunchQuantizeEachRow(at, RmsNormRow{Elements(x), Elements(weight), eps, 0}, numbers, scales);
}

void LaunchSwigluQuantizeRows(const CudaRows& at, const void* gate_up, void* numbers,
                              float* scales) {
  LaunchQuantizeEachRow(at, SwigluRow{Elements(gate_up), nullptr}, numbers, scales);
}

}  // namespace tritonrl
