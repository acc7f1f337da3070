// The kernel of megakernel.h: GEMMs of few rows one behind the other in one launch, bound by
// reading their weights once.
//
// Between launches the memory stands still: the last sums are added and written, the next kernel
// starts, asks for its first weights and waits a microsecond for them, three to four microseconds
// of each of a layer's GEMMs, which take 8 to 47. Here one block on each multiprocessor runs
// through all GEMMs of the chain. A warp of its own copies the block's rows of all weights,
// GEMM after product, into a ring of 144 to 192 KB, as fast as stages of it become free: when
// blocks wait for each other between two GEMMs, it goes on for four to six microseconds' worth
// of memory. It begins even before the kernel in front of the chain has ended.
//
// A stage is 16 rows of W by 512 elements, one copy by the tensor memory accelerator (of 16 copies
// of 1 KB each the issue alone took 0.65 us, as long as memory takes for 21 KB). Each of 8 warps
// multiplies 64 of the elements (tensor cores, m16n8k16, W as operand A and x, padded to 8, 16, 24
// or 32 rows, as B) and keeps sums of its own; at the end of a pass, of up to six tiles of 16 rows
// that share what is read of x, the warps' sums are added in order. In which order k is summed is
// free as long as A and B agree: thread t of four takes elements 8t to 8t + 7 of 32 as k 2t, 2t +
// 1, 2t + 8, 2t + 9 of two mma, so that loads are of 16 bytes. A row's bits do not depend on its
// company.
//
// x is read past L1 (other blocks have just written it), a span ahead, into shared memory, as
// registers hold no more. RMSNorm's sums of squares come from the GEMM that wrote x, by
// clusters; scale and weight are applied to what is read.
//
// If each block read all of x, at 16 rows of 12,288 elements that were as many bytes as of its
// weights, more than the way from the L2 cache to a multiprocessor holds. Two blocks, a cluster,
// therefore share twice the rows of W and divide K: each reads half of x, and has twice the work to
// do while the next span is on its way (megakernel_pipeline.cuh: the cross-block reduction).
#ifndef TRITONRL_MODEL_CUDA_GEMM_MEGAKERNEL_CUH_
#define TRITONRL_MODEL_CUDA_GEMM_MEGAKERNEL_CUH_

#include "model/cuda/gemm/megakernel_pipeline.cuh"

namespace tritonrl {

// The part of a block that multiplies.
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
      // What nobody takes must not be on its way when the next gemm asks.
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
  // Four neighbours of a row of `add` or `out`.
  struct alignas(8) Four {
    __nv_bfloat16 values[4];
  };

  // Until all blocks have come here; then what they wrote is seen by loads past L1.
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

  // inverse [8 kGroups] of rows of x.
  __device__ void InverseRmsOfRows(const MegakernelGemmArguments& gemm) {
    constexpr int kAtOnce = 5;  // loads, all on their way before the first is waited for
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

  // By all threads of the warps that have them.
  __device__ void StoreSquares(const MegakernelGemmArguments& gemm) const {
    if (!sums_.Owned()) return;
    float sum = squares_;
#pragma unroll
    for (int with = 1; with < 8; with *= 2) sum += __shfl_xor_sync(0xffffffff, sum, with);
    if (SumColumn() == 0 && SumRow() < at_.rows) {
      gemm.squares_out[SumRow() * clusters_ + cluster_] = sum;
    }
  }

  // `tiles`, at most kTiles, of the units from `unit` on. next: x's first span, asked for, as it is
  // afterwards for the pass behind unless this is the gemm's last.
  template <int kTiles>
  __device__ void Pass(const MegakernelGemmArguments& gemm, int unit, int tiles,
                       const IndexRange& spans, bool last, MegakernelInputs<kGroups>* next) {
    // Asked for now, needed at the end.
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

  // total += the warp's share of the GEMMs.
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
          const int pack = (lane % 4 + 4 * step) ^ row;  // as copies swizzle lines of 128 bytes
          const uint4 low = *reinterpret_cast<const uint4*>(stage + 16 * pack);
          const uint4 high = *reinterpret_cast<const uint4*>(stage + 1024 + 16 * pack);
          read |= low.x | high.x;
          // Sums that wait for each other lie apart.
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
        // Not before the stage is in registers: an arrival overtakes loads from shared memory that
        // wait in their queue, and the next copy's first lines then overtake them too.
        if (lane == 0) Arrive(shared_.empty + place_.slot + (read & at_.opaque_zero));
        place_.Next();
      }
    }
  }

  // Of the thread's row in `add` or `out`: where its columns of a pair of tiles are.
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

  // The thread 4 behind has the ups of this one's gates. By all threads of a warp.
  __device__ void StoreGated(const MegakernelGemmArguments& gemm, int unit,
                             const float4& sum) const {
    const float gates[4] = {sum.x, sum.y, sum.z, sum.w};
    float ups[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) ups[i] = __shfl_xor_sync(0xffffffff, gates[i], 4);
    if (SumColumn() >= 16 || SumRow() >= at_.rows) return;  // of zeros silu would divide slowly
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
  float squares_ = 0;  // of a gemm's out in the thread's row and columns
};

template <int kGroups>
__global__ void __launch_bounds__(kMegakernelThreads, 1)
    Megakernel(const __grid_constant__ MegakernelArguments at) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // else it is never launched
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
    // Weights are nobody's result.
    if (threadIdx.x == 32 * kMmaWarps) LoadWeights(at, ring, shared);
    __syncwarp();
    ClusterWait();
    GridDependencySync();
    return;
  }
  IncreaseMaxRegisters<232>();
  TriggerDependentLaunch();
  GridDependencySync();
  ClusterWait();  // the other block's barriers are there
  MegakernelMultiplier<kGroups>(at, ring, shared).Run();
#endif
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_GEMM_MEGAKERNEL_CUH_
