// Parts of the megakernel (megakernel.cuh): arguments and shared memory, the weight ring's
// producer, the prefetch and norm of x, and the reduction of partial sums over warps and over the
// two blocks of a cluster.

#ifndef TRITONRL_MODEL_CUDA_GEMM_MEGAKERNEL_PIPELINE_CUH_
#define TRITONRL_MODEL_CUDA_GEMM_MEGAKERNEL_PIPELINE_CUH_

#include "model/cuda/common/ptx.cuh"
#include "model/cuda/common/tensor_map_desc.h"
#include "model/cuda/fused/row_ops.cuh"

namespace tritonrl {

inline constexpr int kMmaWarps = 8;  // consumer warps
// Registers are assigned per warpgroup of four warps, so three idle warps join the producer warp.
inline constexpr int kMegakernelThreads = 32 * (kMmaWarps + 4);
inline constexpr int kSpanElements = 64 * kMmaWarps;  // elements of K in a slot
inline constexpr int kSliceBytes = 16 * 128;          // 64 elements of 16 rows
inline constexpr int kRingSlotBytes = kMmaWarps * kSliceBytes;
inline constexpr int kMaxMegakernelGemms = 4;
inline constexpr int kMaxPassTiles = 6;   // per pass; must be even
inline constexpr int kSumPitch = 36;      // floats between rows of x in a warp's sums
inline constexpr int kClusterBlocks = 2;  // blocks of a cluster split K
inline constexpr int kMegakernelSharedBytes = 227 << 10;  // per block

// Describes the boxes of W [columns, inner] bf16 that fill one slot each.
inline TensorMapDesc WeightTensorMap(const void* weight, int64_t columns, int64_t inner) {
  return {weight, 2, {64, columns, inner / 64}, {2 * inner, 128}, {64, 16, kMmaWarps}};
}

// A block's shared memory behind the ring, for kGroups groups of 8 rows of x.
template <int kGroups>
struct MegakernelScratch {
  static constexpr int kOwned = 4 * kGroups;  // rows of x whose sums a block finishes

  uint4 parked[2 * kGroups][32 * kMmaWarps];  // the next span of x, indexed by the reading thread
  float sums[kMmaWarps * 8 * kGroups * kSumPitch];
  // The other block's partial sums of the rows that this block finishes, double-buffered by pass.
  float received[2][kMaxPassTiles / 2][kOwned][32];
  float inverse[8 * kGroups];
  SharedBarrier sent[2];  // full barriers of `received`
};

template <int kGroups>
struct MegakernelShared : MegakernelScratch<kGroups> {
  static constexpr int kRingSlots =
      (kMegakernelSharedBytes - static_cast<int>(sizeof(MegakernelScratch<kGroups>))) /
      (kRingSlotBytes + 2 * static_cast<int>(sizeof(SharedBarrier)));
  SharedBarrier full[kRingSlots], empty[kRingSlots];
};

// Arguments of one GEMM: out = x W^T (+ add), or with swiglu out = silu(x gates^T) * (x ups^T).
struct MegakernelGemmArguments {
  CUtensorMap weights;  // [K / 64, N, 64], boxes of a slot
  const __nv_bfloat16* x;
  const __nv_bfloat16* norm_weight;  // null: no norm
  const __nv_bfloat16* add;          // null: no addend
  __nv_bfloat16* out;
  const float* squares_in;  // [rows, clusters] sums of squares of x; read only with norm_weight
  float* squares_out;       // [rows, clusters] sums of squares of out; null: not written
  int inner;                // K
  int columns;              // of out: N, or N / 2 with swiglu
  bool swiglu;
  // Units per cluster and per pass. A unit is a tile of 16 rows of W, with swiglu a pair of tiles.
  int units_each;
  int pass_units;
};

struct MegakernelArguments {
  int rows;
  float eps;
  int count;
  uint32_t opaque_zero;  // 0, unknown to the compiler
  MegakernelGemmArguments gemms[kMaxMegakernelGemms];
  uint64_t* grid_arrivals;  // number of block arrivals in all launches so far
};

// The indices [first, last).
struct IndexRange {
  int first, last;
};
// Returns a cluster's units of a GEMM.
__device__ inline IndexRange UnitsOf(const MegakernelGemmArguments& gemm, int cluster) {
  const int units = gemm.columns / 16;
  const int first = min(cluster * gemm.units_each, units);
  return {first, min(first + gemm.units_each, units)};
}
// Returns this block's spans of K.
__device__ inline IndexRange SpansOf(const MegakernelGemmArguments& gemm) {
  const int spans = gemm.inner / kSpanElements;
  const int half = (spans + 1) / 2;
  return blockIdx.x % 2 == 0 ? IndexRange{0, half} : IndexRange{half, spans};
}
// Returns the number of tiles of a pass when `units` units remain.
__device__ inline int TilesOf(const MegakernelGemmArguments& gemm, int units) {
  return min(units, gemm.pass_units) * (gemm.swiglu ? 2 : 1);
}

// Sets units_each and pass_units so that the number of passes is minimal.
inline void DivideUnits(int clusters, MegakernelGemmArguments* gemm) {
  const auto divided = [](int n, int by) { return (n + by - 1) / by; };
  gemm->units_each = divided(gemm->columns / 16, clusters);
  const int most = gemm->swiglu ? kMaxPassTiles / 2 : kMaxPassTiles;
  gemm->pass_units = divided(gemm->units_each, divided(gemm->units_each, most));
}

// A position in the ring: a slot, and the parity of the phase of its barriers.
template <int kRingSlots>
struct RingPlace {
  int slot = 0;
  uint32_t parity = 0;
  __device__ void Next() {
    if (++slot == kRingSlots) {
      slot = 0;
      parity ^= 1;
    }
  }
};

// The producer, run by one thread: copies the block's weights of all GEMMs, and refills a slot as
// soon as all consumer warps have read its previous content.
template <int kGroups>
__device__ void LoadWeights(const MegakernelArguments& at, uint8_t* ring,
                            MegakernelShared<kGroups>* shared) {
  const uint64_t policy = EvictFirstPolicy();
  RingPlace<MegakernelShared<kGroups>::kRingSlots> place;
  for (int i = 0; i < at.count; ++i) {
    const MegakernelGemmArguments& gemm = at.gemms[i];
    const IndexRange units = UnitsOf(gemm, blockIdx.x / kClusterBlocks);
    const IndexRange spans = SpansOf(gemm);
    for (int unit = units.first; unit < units.last; unit += gemm.pass_units) {
      const int tiles = TilesOf(gemm, units.last - unit);
      for (int span = spans.first; span < spans.last; ++span) {
        for (int tile = 0; tile < tiles; ++tile) {
          const int row =
              gemm.swiglu ? tile % 2 * gemm.columns + (unit + tile / 2) * 16 : (unit + tile) * 16;
          SharedBarrier* const full = shared->full + place.slot;
          WaitForPhase(shared->empty + place.slot, place.parity ^ 1);
          ArriveAndExpect(full, kRingSlotBytes);
          TmaCopy(ring + place.slot * kRingSlotBytes, &gemm.weights, 0, row,
                  span * (kSpanElements / 64), full, policy);
          place.Next();
        }
      }
    }
  }
}

// A thread's elements of x in a span: for each group, row m = 8 group + lane / 4. Of the warp's 64
// elements of K the thread holds 8 from 8 (lane % 4) on and 8 from 32 + 8 (lane % 4) on.
template <int kGroups>
struct MegakernelInputs {
  uint4 values[kGroups][2];
  uint4 norm[2];

  // Starts to read `span`; WaitForPrefetch then sets `values`. opaque_zero: a 0 that depends on the
  // registers of the previous span, so that the copy cannot overtake the loads of that span.
  __device__ void Prefetch(const MegakernelGemmArguments& gemm, int rows, int span,
                           uint32_t opaque_zero, MegakernelShared<kGroups>* shared) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int k = span * kSpanElements + warp * 64 + 8 * (lane % 4);
#pragma unroll
    for (int step = 0; step < 2; ++step) {
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        const int m = 8 * group + lane / 4;
        const __nv_bfloat16* const from = gemm.x + int64_t{m} * gemm.inner + k + 32 * step;
        CopyAsync(&shared->parked[2 * group + step][threadIdx.x + opaque_zero],
                  m < rows ? from : gemm.x, m < rows ? 16 : 0);
      }
      if (gemm.norm_weight != nullptr) {
        norm[step] = *reinterpret_cast<const uint4*>(gemm.norm_weight + k + 32 * step);
      }
    }
    EndCopies();
  }

  __device__ void WaitForPrefetch(const MegakernelShared<kGroups>& shared) {
    WaitForCopies<0>();
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        values[group][step] = shared.parked[2 * group + step][threadIdx.x];
      }
    }
  }

  // Returns bits that depend on all values.
  __device__ uint32_t Bits() const {
    uint32_t bits = 0;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) bits |= values[group][0].x | values[group][1].x;
    return bits;
  }

  // Applies RMSNorm to the values. inverse: 1 / rms of each row of x.
  __device__ void Norm(const float* inverse) {
#pragma unroll
    for (int step = 0; step < 2; ++step) {
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        const int m = 8 * group + threadIdx.x % 32 / 4;
        const auto normed = ApplyRmsNorm(As(values[group][step]), As(norm[step]), inverse[m]);
        values[group][step] = *reinterpret_cast<const uint4*>(&normed);
      }
    }
  }

 private:
  __device__ static Pack<__nv_bfloat16> As(const uint4& x) {
    return *reinterpret_cast<const Pack<__nv_bfloat16>*>(&x);
  }
};

// Returns the row, among the first 8 of a tile, that the thread uses as row lane / 4 of its
// operand. Neighboring operand rows are 4 tile rows apart, so that the 8 threads of one load phase
// access all banks despite the swizzle.
__device__ inline int LaneRow() {
  const int row = threadIdx.x % 32 / 4;
  return row / 2 + row % 2 * 4;
}

// In the reduction of a pair of tiles a thread adds up four sums: those of row SumRow() of x and of
// columns SumColumn() to SumColumn() + 3 of the pair's 32 columns.
__device__ inline int SumRow() { return threadIdx.x / 8; }
__device__ inline int SumColumn() { return threadIdx.x % 8 * 4; }

// The reduction by the consumer warps at the end of a pass. Each block finishes half of the rows of
// x and sends its partial sums of the other half to the other block's shared memory. Two buffers
// suffice: a block writes a buffer again only two passes later, and the other block's message of
// the pass in between shows that it has read the buffer.
template <int kGroups>
class MegakernelReduction {
 public:
  using Shared = MegakernelShared<kGroups>;

  __device__ explicit MegakernelReduction(Shared* shared) : shared_(*shared) {}

  // Whether this block finishes the thread's sums; the answer is the same for all threads of a
  // warp.
  __device__ bool Owned() const { return SumRow() / Shared::kOwned == rank_; }

  // Sets `sums`, one per pair of tiles, to the sums over all warps of the cluster if this block
  // finishes them (Owned). Rows beyond x are sent too, so that neither block runs ahead of the
  // other.
  template <int kTiles>
  __device__ void Reduce(const float (&total)[kTiles][kGroups][4], int tiles,
                         float4 (&sums)[kTiles / 2]) {
    const auto received = shared_.received[pass_ % 2];
    SharedBarrier* const sent = shared_.sent + pass_ % 2;
    if (threadIdx.x == 0) {
      ArriveAndExpect(sent,
                      (tiles + 1) / 2 * Shared::kOwned * 32 * static_cast<int>(sizeof(float)));
    }
#pragma unroll
    for (int pair = 0; pair < kTiles / 2; ++pair) {
      if (2 * pair >= tiles) break;
      StorePartialSums<kTiles>(total, pair);
      NamedBarrierSync(32 * kMmaWarps);
      if (SumRow() < 2 * Shared::kOwned) sums[pair] = SumWarps();
      if (SumRow() < 2 * Shared::kOwned && !Owned()) {
        StoreAsyncCluster(&received[pair][SumRow() % Shared::kOwned][SumColumn()], 1 - rank_,
                          sums[pair], sent);
      }
      NamedBarrierSync(32 * kMmaWarps);
    }
    WaitForPhase(sent, pass_ / 2 % 2);
#pragma unroll
    for (int pair = 0; pair < kTiles / 2; ++pair) {
      if (2 * pair >= tiles || !Owned()) break;
      const float* from = &received[pair][SumRow() % Shared::kOwned][SumColumn()];
      AddTo(*reinterpret_cast<const float4*>(from), &sums[pair]);
    }
    ++pass_;
  }

 private:
  // Writes this warp's sums of a pair of tiles to shared_.sums [warps, 8 kGroups, kSumPitch].
  template <int kTiles>
  __device__ void StorePartialSums(const float (&total)[kTiles][kGroups][4], int pair) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int m = 8 * group + 2 * (lane % 4) + i % 2;
          const int row = 16 * half + LaneRow() + 8 * (i / 2);
          shared_.sums[(warp * 8 * kGroups + m) * kSumPitch + row] =
              total[2 * pair + half][group][i];
        }
      }
    }
  }

  __device__ static void AddTo(const float4& by, float4* sum) {
    sum->x += by.x;
    sum->y += by.y;
    sum->z += by.z;
    sum->w += by.w;
  }

  __device__ float4 SumWarps() const {
    float4 sum = {0, 0, 0, 0};
#pragma unroll
    for (int warp = 0; warp < kMmaWarps; ++warp) {
      const float* from = shared_.sums + (warp * 8 * kGroups + SumRow()) * kSumPitch + SumColumn();
      AddTo(*reinterpret_cast<const float4*>(from), &sum);
    }
    return sum;
  }

  Shared& shared_;
  const int rank_ = blockIdx.x % kClusterBlocks;  // in the cluster
  int pass_ = 0;                                  // counted over all GEMMs
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_GEMM_MEGAKERNEL_PIPELINE_CUH_
