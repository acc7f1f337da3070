// The device code of the megakernel (megakernel.h), which removes the idle memory time between
// dependent GEMMs.

#ifndef TRITONRL_MODEL_CUDA_GEMM_MEGAKERNEL_CUH_
#define TRITONRL_MODEL_CUDA_GEMM_MEGAKERNEL_CUH_

#include "model/cuda/gemm/megakernel_pipeline.cuh"

namespace tritonrl {

// Design of the megakernel
//
// Purpose. With one launch per GEMM, the tail of one kernel and the first loads of the next leave
// memory idle for 3 to 4 us of the 8 to 47 us that a decode layer's GEMM takes.
//
// Grid. One block per multiprocessor runs all GEMMs, with a grid barrier between two GEMMs. Two
// blocks form a cluster, which owns a range of W's rows and splits K: each block reads half of x.
// (If every block read all of x, 16 rows of 12,288 elements would be as many bytes as its weights
// and exceed the bandwidth from L2 to a multiprocessor.) At the end of a pass the two blocks
// exchange partial sums through distributed shared memory.
//
// Weights. A producer warp copies the block's rows of all GEMMs, in order, by TMA into a ring of
// 144 to 192 KB in shared memory (kRingSlots slots of kRingSlotBytes). The producer skips the grid
// barriers, so it prefetches 4 to 6 us of memory traffic while the other warps wait, and it starts
// before the preceding kernel has ended. One TMA copy fills a slot with 16 rows of W by 512
// elements of K. (Issuing 16 copies of 1 KB took 0.65 us, in which memory delivers 21 KB.)
//
// Math. Each of 8 warps multiplies 64 of a slot's 512 elements with mma m16n8k16: W is operand A;
// x, padded to 8, 16, 24 or 32 rows, is operand B. A pass covers up to six tiles of 16 rows of W,
// which all use the same loaded x. After the pass the warps' partial sums are added in a fixed
// order. The order of k within an mma is free as long as A and B agree: thread t of four uses
// elements 8t to 8t + 7 of 32 as k = 2t, 2t + 1, 2t + 8, 2t + 9 of two mma, so that loads are 16
// bytes wide. The bits of a result row do not depend on other rows.
//
// Inputs. Other blocks have just written x, so it is read past L1, into shared memory, one span of
// 512 elements ahead. The GEMM that produces x writes RMSNorm's sums of squares, one per cluster
// and row; the next GEMM applies scale and weight when it reads x.

// The computation of the consumer warps of a block.
template <int kGroups>
class MegakernelMultiplier {
 public:
  using Shared = MegakernelShared<kGroups>;

  __device__ MegakernelMultiplier(const MegakernelArguments& at, const uint8_t* ring,
                                  Shared* shared)
      : at_(at), ring_(ring), shared_(*shared), sums_(shared) {}

  __device__ void Run() {
    for (int i = 0; i < at_.count; ++i) {
      if (i > 0) GridBarrier();
      const MegakernelGemmArguments& gemm = at_.gemms[i];
      const IndexRange spans = SpansOf(gemm);
      const IndexRange units = UnitsOf(gemm, cluster_);
      MegakernelInputs<kGroups> x;
      // Only a prefetch that a pass will use may start: an unused prefetch would still be in flight
      // when the next GEMM starts its own.
      if (units.first < units.last && spans.first < spans.last) {
        x.Prefetch(gemm, at_.rows, spans.first, 0, &shared_);
      }
      if (gemm.norm_weight != nullptr) InverseRmsOfRows(gemm);
      squares_ = 0;
      for (int unit = units.first; unit < units.last; unit += gemm.pass_units) {
        const int tiles = TilesOf(gemm, units.last - unit);
        const bool last = unit + gemm.pass_units >= units.last;
        if (tiles <= 2) {
          Pass<2>(gemm, unit, tiles, spans, last, &x);
        } else if (tiles <= 4) {
          Pass<4>(gemm, unit, tiles, spans, last, &x);
        } else {
          Pass<kMaxPassTiles>(gemm, unit, tiles, spans, last, &x);
        }
      }
      if (gemm.squares_out != nullptr) StoreSquares(gemm);
    }
  }

 private:
  // Four neighboring elements of a row of `add` or `out`.
  struct alignas(8) Four {
    __nv_bfloat16 values[4];
  };

  // Barrier of all blocks. After it their earlier writes are visible to loads that bypass L1.
  __device__ void GridBarrier() {
    NamedBarrierSync(32 * kMmaWarps);
    if (threadIdx.x == 0) {
      const uint64_t before = AtomicAddRelease(at_.grid_arrivals);
      const uint64_t all = (before / gridDim.x + 1) * gridDim.x;
      while (LoadAcquire(at_.grid_arrivals) < all) {
      }
    }
    NamedBarrierSync(32 * kMmaWarps);
  }

  // Writes 1 / rms of each row of x to shared_.inverse [8 kGroups].
  __device__ void InverseRmsOfRows(const MegakernelGemmArguments& gemm) {
    constexpr int kAtOnce = 5;  // loads in flight
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float sums[kGroups] = {};
    for (int first = lane; first < clusters_; first += 32 * kAtOnce) {
      float parts[kGroups][kAtOnce];
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int m = warp + kMmaWarps * group, cluster = first + 32 * i;
          parts[group][i] = m < at_.rows && cluster < clusters_
                                ? LoadCacheGlobal(gemm.squares_in + m * clusters_ + cluster)
                                : 0.0f;
        }
      }
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) sums[group] += parts[group][i];
      }
    }
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const int m = warp + kMmaWarps * group;
      const float sum = WarpSum(sums[group]);
      if (lane == 0) {
        shared_.inverse[m] = m < at_.rows ? InverseRms(sum, gemm.inner, at_.eps) : 0.0f;
      }
    }
    NamedBarrierSync(32 * kMmaWarps);
  }

  // Writes this cluster's sums of squares of out. All consumer threads make the call.
  __device__ void StoreSquares(const MegakernelGemmArguments& gemm) const {
    if (!sums_.Owned()) return;
    float sum = squares_;
#pragma unroll
    for (int with = 1; with < 8; with *= 2) sum += __shfl_xor_sync(0xffffffff, sum, with);
    if (SumColumn() == 0 && SumRow() < at_.rows) {
      gemm.squares_out[SumRow() * clusters_ + cluster_] = sum;
    }
  }

  // Runs one pass over `tiles` (at most kTiles) tiles from `unit` on. On entry *next is the
  // prefetch of this pass's first span of x, on return that of the next pass, unless `last`.
  template <int kTiles>
  __device__ void Pass(const MegakernelGemmArguments& gemm, int unit, int tiles,
                       const IndexRange& spans, bool last, MegakernelInputs<kGroups>* next) {
    // Addends are used at the end of the pass; the early load hides its latency.
    uint2 add[kTiles / 2];
#pragma unroll
    for (int pair = 0; pair < kTiles / 2; ++pair) {
      const bool there = gemm.add != nullptr && sums_.Owned() && SumRow() < at_.rows &&
                         2 * pair + SumColumn() / 16 < tiles;
      add[pair] = there ? LoadCacheGlobal8(gemm.add + PlaceOf(gemm, unit + 2 * pair)) : uint2{0, 0};
    }
    float total[kTiles][kGroups][4] = {};
    Multiply<kTiles>(gemm, tiles, spans, last, next, total);
    float4 sums[kTiles / 2];
    sums_.template Reduce<kTiles>(total, tiles, sums);
    if (!sums_.Owned()) return;
#pragma unroll
    for (int pair = 0; pair < kTiles / 2; ++pair) {
      if (2 * pair >= tiles) break;
      if (gemm.swiglu) {
        StoreGated(gemm, unit + pair, sums[pair]);
      } else if (SumRow() < at_.rows && 2 * pair + SumColumn() / 16 < tiles) {
        Store(gemm, unit + 2 * pair, sums[pair], *reinterpret_cast<const Four*>(&add[pair]));
      }
    }
  }

  // Adds this warp's partial sums of the pass to `total`.
  template <int kTiles>
  __device__ void Multiply(const MegakernelGemmArguments& gemm, int tiles, const IndexRange& spans,
                           bool last, MegakernelInputs<kGroups>* next,
                           float (&total)[kTiles][kGroups][4]) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = LaneRow();
    const uint8_t* const slice = ring_ + warp * kSliceBytes + 128 * row;
    for (int span = spans.first; span < spans.last; ++span) {
      next->WaitForPrefetch(shared_);
      MegakernelInputs<kGroups> x = *next;
      if (span + 1 < spans.last || !last) {
        next->Prefetch(gemm, at_.rows, span + 1 < spans.last ? span + 1 : spans.first,
                       x.Bits() & at_.opaque_zero, &shared_);
      }
      if (gemm.norm_weight != nullptr) x.Norm(shared_.inverse);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        if (tile >= tiles) break;
        WaitForPhase(shared_.full + place_.slot, place_.parity);
        const uint8_t* stage = slice + place_.slot * kRingSlotBytes;
        uint32_t read = 0;
#pragma unroll
        for (int step = 0; step < 2; ++step) {
          const int pack = (lane % 4 + 4 * step) ^ row;  // TMA's 128-byte swizzle
          const uint4 low = *reinterpret_cast<const uint4*>(stage + 16 * pack);
          const uint4 high = *reinterpret_cast<const uint4*>(stage + 1024 + 16 * pack);
          read |= low.x | high.x;
          // The loops over groups put kGroups instructions between dependent mma.
#pragma unroll
          for (int group = 0; group < kGroups; ++group) {
            const uint4& b = x.values[group][step];
            MmaBf16(total[tile][group], low.x, high.x, low.y, high.y, b.x, b.y);
          }
#pragma unroll
          for (int group = 0; group < kGroups; ++group) {
            const uint4& b = x.values[group][step];
            MmaBf16(total[tile][group], low.z, high.z, low.w, high.w, b.z, b.w);
          }
        }
        __syncwarp();
        // The address depends on the loaded registers. Otherwise the arrival could overtake queued
        // loads from shared memory, and the next copy would overwrite the data before they read it.
        if (lane == 0) Arrive(shared_.empty + place_.slot + (read & at_.opaque_zero));
        place_.Next();
      }
    }
  }

  // Returns the index in `add` or `out` of the thread's four elements of a pair of tiles.
  __device__ static int64_t PlaceOf(const MegakernelGemmArguments& gemm, int unit) {
    return int64_t{SumRow()} * gemm.columns + unit * 16 + SumColumn();
  }

  __device__ void Store(const MegakernelGemmArguments& gemm, int unit, const float4& sum,
                        const Four& add) {
    const float sums[4] = {sum.x, sum.y, sum.z, sum.w};
    Four y;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      y.values[i] = RoundTo<__nv_bfloat16>(sums[i] + ToFloat(add.values[i]));
      squares_ += ToFloat(y.values[i]) * ToFloat(y.values[i]);
    }
    *reinterpret_cast<Four*>(gemm.out + PlaceOf(gemm, unit)) = y;
  }

  // Stores silu(gates) * ups; lane ^ 4 holds the ups for this lane's gates. All threads of a warp
  // make the call.
  __device__ void StoreGated(const MegakernelGemmArguments& gemm, int unit,
                             const float4& sum) const {
    const float gates[4] = {sum.x, sum.y, sum.z, sum.w};
    float ups[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) ups[i] = __shfl_xor_sync(0xffffffff, gates[i], 4);
    if (SumColumn() >= 16 || SumRow() >= at_.rows) return;  // skips slow divisions in silu
    Four y;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      y.values[i] = SiluMul(RoundTo<__nv_bfloat16>(gates[i]), RoundTo<__nv_bfloat16>(ups[i]));
    }
    *reinterpret_cast<Four*>(gemm.out + PlaceOf(gemm, unit)) = y;
  }

  const MegakernelArguments& at_;
  const uint8_t* const ring_;
  Shared& shared_;
  const int cluster_ = blockIdx.x / kClusterBlocks, clusters_ = gridDim.x / kClusterBlocks;
  RingPlace<Shared::kRingSlots> place_;
  MegakernelReduction<kGroups> sums_;
  float squares_ = 0;  // sum of squares of this thread's elements of a GEMM's out
};

template <int kGroups>
__global__ void __launch_bounds__(kMegakernelThreads, 1)
    Megakernel(const __grid_constant__ MegakernelArguments at) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // never launched on older architectures
  using Shared = MegakernelShared<kGroups>;
  uint8_t* const ring = DynamicSharedMemory();
  auto* const shared = reinterpret_cast<Shared*>(ring + Shared::kRingSlots * kRingSlotBytes);
  if (threadIdx.x == 0) {
    for (int i = 0; i < Shared::kRingSlots; ++i) {
      InitBarrier(shared->full + i, 1);
      InitBarrier(shared->empty + i, kMmaWarps);
    }
    for (int i = 0; i < 2; ++i) InitBarrier(shared->sent + i, 1);
    PublishBarriers();
  }
  __syncthreads();
  ClusterArrive();
  if (threadIdx.x / 32 >= kMmaWarps) {
    DecreaseMaxRegisters<40>();
    // No earlier kernel writes weights, so this does not wait for them.
    if (threadIdx.x == 32 * kMmaWarps) LoadWeights(at, ring, shared);
    __syncwarp();
    ClusterWait();
    GridDependencySync();
    return;
  }
  IncreaseMaxRegisters<232>();
  TriggerDependentLaunch();
  GridDependencySync();
  ClusterWait();  // until the other block's barriers are initialized
  MegakernelMultiplier<kGroups>(at, ring, shared).Run();
#endif
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_GEMM_MEGAKERNEL_CUH_
