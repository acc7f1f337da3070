// The decode attention kernel: one token per row over a paged cache.
//
// The kernel is bound by reading keys and values: an H200 delivers 33 KB a microsecond to each
// multiprocessor, which needs 40 KB in flight all the time. So the launch has as many blocks as the
// GPU holds at a time, and blocks take units (a tile of the plan, a key head) in turn. Each of a
// block's four warps has its own ring in shared memory. While the warp computes, it fills the ring
// with the next pages, also those of later units, so that waiting for a unit's queries or for other
// warps' sums does not stop the reads. A warp reads every fourth page of a unit.
//
// Tensor cores compute all query heads of a key head at once, transposed: scores [16 tokens, 8
// columns] = keys [16, D] x queries [D, 8], results [D, 8] += values [D, 16] x weights [16, 8]. So
// the heads fill 8 columns; not transposed, they would have to fill 16 rows. Rows that attend to
// the same pages (a token and its draft tokens, samples of a prompt) are columns of the same unit,
// in up to three such GEMMs for each page, so that one read serves them all. FP8 keys and values
// become fp16 in registers, which represents them exactly; queries and weights are fp16 then. The
// exponents are relative to a running maximum, which is raised only when a score exceeds it by more
// than kSlack: weights stay at most 2^kSlack, and in most pages lanes exchange no data.
#ifndef TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_KERNEL_CUH_
#define TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_KERNEL_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "model/cuda/common/ptx.cuh"
#include "rollout/cuda/attention/decode_page_pipeline.cuh"
#include "rollout/cuda/attention/decode_softmax.cuh"

namespace tritonrl::decode {

// A block's shared memory: the warps' rings, their barriers, their results, and the bit mask of
// complete rows.
template <typename Cached, int kDim, int kStages>
struct Memory {
  static constexpr int kWarpBytes = PageRing<Cached, kDim, kStages, false>::kBytes;
  static constexpr int kBarriersEach = (kStages + 1) / 2 * 2;  // of a warp; a multiple of 16 bytes
  static constexpr int kBarrierBytes =
      kWarps * kBarriersEach * static_cast<int>(sizeof(SharedBarrier));
  static constexpr int kBytes =
      kWarps * kWarpBytes + kBarrierBytes +
      (kWarps * kGroupColumns * (kDim + 2) + 1) * static_cast<int>(sizeof(float));
  __device__ static SharedBarrier* Barriers(uint8_t* memory, int warp) {
    return reinterpret_cast<SharedBarrier*>(memory + kWarps * kWarpBytes) + warp * kBarriersEach;
  }
  // Weighted sums of values [kWarps][kGroupColumns][kDim], then the exponents' origins
  // [kWarps][kGroupColumns] and the sums of weights [kWarps][kGroupColumns].
  __device__ static float* Sums(uint8_t* memory) {
    return reinterpret_cast<float*>(memory + kWarps * kWarpBytes + kBarrierBytes);
  }
};

// The DecodeRow of each of a unit's rows: lane i of each warp holds that of row i.
struct UnitRows {
  DecodeRow mine;

  __device__ UnitRows(const Call& call, const Unit& unit) {
    const int lane = threadIdx.x % 32;
    mine = lane < unit.tile.rows ? call.rows[unit.tile.row + lane] : DecodeRow();
  }
  // Must be called by the whole warp.
  __device__ DecodeRow Of(int row) const {
    return {__shfl_sync(~0u, mine.parts, row), __shfl_sync(~0u, mine.first_slot, row)};
  }
};

// Combines the warps' results of an octet (8 columns) of a unit. Writes them to `out`, or to
// `parts` if the row has several parts.
template <int kDim>
__device__ void WriteOctet(const Call& call, const Unit& unit, const UnitRows& rows, int octet,
                           int columns, const float* sums) {
  const float* most = sums + kWarps * kGroupColumns * kDim;
  const float* totals = most + kWarps * kGroupColumns;
  // All threads of a warp have the same column.
  for (int i = threadIdx.x; i < columns * (kDim / 2); i += kWarps * 32) {
    const int column = i / (kDim / 2), element = i % (kDim / 2) * 2;
    float top = -INFINITY, total = 0, x = 0, y = 0;
    for (int w = 0; w < kWarps; ++w) top = fmaxf(top, most[w * kGroupColumns + column]);
    for (int w = 0; w < kWarps; ++w) {
      const float share = top == -INFINITY ? 0.0f : exp2f(most[w * kGroupColumns + column] - top);
      const float* sum = sums + (w * kGroupColumns + column) * kDim + element;
      x += share * sum[0];
      y += share * sum[1];
      total += share * totals[w * kGroupColumns + column];
    }
    const float inverse = total == 0 ? 0.0f : 1.0f / total;  // a NaN in `total` is passed on
    const int row = (octet * kGroupColumns + column) / unit.heads;
    const int head = unit.first_head + (octet * kGroupColumns + column) % unit.heads;
    const DecodeRow parts = rows.Of(row);
    const bool whole = parts.parts == 1;
    const int64_t line = whole ? unit.tile.row + row : parts.first_slot + unit.tile.part;
    const int64_t to = line * call.query_heads + head;
    *reinterpret_cast<__nv_bfloat162*>((whole ? call.out : call.parts) + to * kDim + element) =
        __floats2bfloat162_rn(x * inverse, y * inverse);
    if (!whole && element == 0) call.lses[to] = log2f(total) + top;
  }
}

// Returns a bit mask of the unit's rows of which this block has written the last part; it then sees
// all parts. Must be called by the whole block after WriteOctet. One thread for each row orders the
// writes of all threads, because a fence in each thread would wait for the copies in flight.
__device__ inline uint32_t CompleteRows(const Call& call, const Unit& unit, const UnitRows& rows,
                                        uint32_t* flags) {
  __syncthreads();
  if (threadIdx.x < 32) {
    const int of_group = unit.number % call.groups, row = unit.tile.row + threadIdx.x;
    int32_t* const arrived =
        call.arrived + (row * call.key_heads + unit.key_head) * call.groups + of_group;
    const bool last = threadIdx.x < unit.tile.rows && AddOrdered(arrived, 1) == rows.mine.parts - 1;
    if (last) *arrived = 0;  // for the next launch
    const uint32_t complete = __ballot_sync(~0u, last);
    if (threadIdx.x == 0) *flags = complete;
  }
  __syncthreads();
  return *flags;
}

// A thread's kEach elements of a head: the results of the row's parts, merged in their order.
struct MergedParts {
  static constexpr int kEach = 8;       // elements
  static constexpr int kTogether = 16;  // parts that are read at a time

  float top = -INFINITY, total = 0, sum[kEach] = {};

  // Adds the next `count` parts, at most kTogether of them. from: the thread's elements in the
  // first part's slot; slot_heads: number of heads from one slot to the next.
  __device__ void Add(const float* lses_from, const __nv_bfloat16* from, int slot_heads, int dim,
                      int count) {
    float lses[kTogether];
    uint4 bits[kTogether];
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      const int64_t line = int64_t{k} * slot_heads;
      lses[k] = k < count ? __ldcg(lses_from + line) : -INFINITY;
      bits[k] = k < count ? __ldcg(reinterpret_cast<const uint4*>(from + line * dim)) : uint4();
    }
    float higher = top;
#pragma unroll
    for (int k = 0; k < kTogether; ++k) higher = fmaxf(higher, lses[k]);
    const float factor = exp2f(top - higher);
    top = higher;
    total *= factor;
#pragma unroll
    for (int j = 0; j < kEach; ++j) sum[j] *= factor;
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      const float share = exp2f(lses[k] - top);
      const uint32_t pairs[kEach / 2] = {bits[k].x, bits[k].y, bits[k].z, bits[k].w};
#pragma unroll
      for (int j = 0; j < kEach / 2; ++j) {
        const float2 pair = PairOf(pairs[j]);
        sum[2 * j] += share * pair.x;
        sum[2 * j + 1] += share * pair.y;
      }
      total += share;
    }
  }

  __device__ void Write(__nv_bfloat16* to) const {
    const float inverse = 1.0f / total;
    uint32_t pairs[kEach / 2];
#pragma unroll
    for (int j = 0; j < kEach / 2; ++j) {
      pairs[j] = Bits(__floats2bfloat162_rn(sum[2 * j] * inverse, sum[2 * j + 1] * inverse));
    }
    *reinterpret_cast<uint4*>(to) = {pairs[0], pairs[1], pairs[2], pairs[3]};
  }
};

// Merges the parts of the unit's rows whose bits are set in `complete`. The block merges all these
// rows at once, because a row's reads alone take about as long as the rest of its merge.
template <int kDim>
__device__ void MergeRows(const Call& call, const Unit& unit, const UnitRows& rows,
                          uint32_t complete) {
  constexpr int kEach = MergedParts::kEach;
  const int lane = threadIdx.x % 32, pieces = unit.Columns() * (kDim / kEach);
  for (int first = threadIdx.x - lane; first < pieces; first += kWarps * 32) {
    const int column = (first + lane) / (kDim / kEach);
    const int element = (first + lane) % (kDim / kEach) * kEach;
    const int row = column / unit.heads, head = unit.first_head + column % unit.heads;
    const DecodeRow of = rows.Of(row < 32 ? row : 31);
    if (first + lane >= pieces || (complete >> row & 1) == 0) continue;
    MergedParts merged;
    for (int part = 0; part < of.parts; part += MergedParts::kTogether) {
      const int64_t from = int64_t{of.first_slot + part} * call.query_heads + head;
      merged.Add(call.lses + from, call.parts + from * kDim + element, call.query_heads, kDim,
                 of.parts - part);
    }
    const int64_t to = int64_t{unit.tile.row + row} * call.query_heads + head;
    merged.Write(call.out + to * kDim + element);
  }
}

// Computes a unit of up to kOctets * 8 columns. read: see PageRing::Fill.
template <int kOctets, typename Cached, int kDim, int kStages, bool kBoxes>
__device__ void DecodeUnit(const Call& call, const Unit& unit, uint8_t* memory,
                           PageRing<Cached, kDim, kStages, kBoxes>* ring, uint32_t* read) {
  const int warp = threadIdx.x / 32;
  const UnitRows rows(call, unit);
  OnlineSoftmax<Cached, kDim, kOctets> sums(
      {call.queries + (int64_t{unit.tile.row} * call.query_heads + unit.first_head) * kDim,
       call.query_heads * kDim, unit.tile.rows, unit.heads, unit.tile.fewer});
  for (int left = unit.tile.tokens - warp * kPageTokens; left > 0; left -= kWarps * kPageTokens) {
    __syncwarp();  // all lanes have read the stage that Fill overwrites
    ring->Fill(*read);
    *read = sums.Add(ring->Take(), left, call.scale_log2);
  }
  float* const together = Memory<Cached, kDim, kStages>::Sums(memory);
#pragma unroll
  for (int octet = 0; octet < kOctets; ++octet) {
    const int left = unit.Columns() - octet * kGroupColumns,
              columns = left < kGroupColumns ? left : kGroupColumns;
    if (columns <= 0) break;
    if (octet > 0) __syncthreads();
    sums.Store(octet, together + warp * kGroupColumns * kDim,
               together + kWarps * kGroupColumns * kDim + warp * kGroupColumns,
               kWarps * kGroupColumns, columns);
    __syncthreads();
    WriteOctet<kDim>(call, unit, rows, octet, columns, together);
  }
  if (rows.Of(0).parts > 1) {  // then all rows of the unit have several parts
    auto* const flags = reinterpret_cast<uint32_t*>(together + kWarps * kGroupColumns * (kDim + 2));
    const uint32_t complete = CompleteRows(call, unit, rows, flags);
    if (complete != 0) MergeRows<kDim>(call, unit, rows, complete);
  }
  __syncthreads();
}

template <typename Cached, int kDim, int kStages, bool kBoxes>
__device__ void Decode(const Call& call) {
  using Place = Memory<Cached, kDim, kStages>;
  TriggerDependentLaunch();
  uint8_t* const memory = DynamicSharedMemory();
  const int warp = threadIdx.x / 32;
  const Units units(call);
  PageRing<Cached, kDim, kStages, kBoxes> ring(call, units, memory + warp * Place::kWarpBytes,
                                               Place::Barriers(memory, warp), warp);
  for (int i = 0; i < kStages - 1; ++i) ring.Fill(0);
  ring.WaitForEarlier();  // an earlier kernel writes the queries

  uint32_t read = 0;
  Unit unit = units.Load(blockIdx.x);
  while (units.Has(unit)) {
    const Unit next = units.After(unit);
    if (unit.Columns() <= kGroupColumns) {
      DecodeUnit<1>(call, unit, memory, &ring, &read);
    } else {
      DecodeUnit<kMaxColumnGroups>(call, unit, memory, &ring, &read);
    }
    unit = next;
  }
}

// kStages: pages of a warp's ring. kBoxes: Hopper's tensor memory accelerator copies the pages (see
// PageRing).
template <typename Cached, int kDim, int kStages, bool kBoxes>
__global__ void __launch_bounds__(kWarps * 32, 2) DecodeKernel(const __grid_constant__ Call call) {
#ifdef __CUDA_ARCH__
  if constexpr (!kBoxes || __CUDA_ARCH__ >= 900)  // before Hopper kBoxes is never launched
#endif
    Decode<Cached, kDim, kStages, kBoxes>(call);
}

}  // namespace tritonrl::decode

#endif  // TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_KERNEL_CUH_
