// The kernel of product_chain.h: products of few rows one behind the other in one launch, bound by
// reading their weights once.
//
// Between launches the memory stands still: the last sums are added and written, the next kernel
// starts, asks for its first weights and waits a microsecond for them, three to four microseconds
// of each of a layer's products, which take 8 to 47. Here one block on each multiprocessor runs
// through all products of the chain. A warp of its own copies the block's rows of all weights,
// product after product, into a ring of 144 to 192 KB, as fast as stages of it become free: when
// blocks wait for each other between two products, it goes on for four to six microseconds' worth
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
// registers hold no more. RMSNorm's sums of squares come from the product that wrote x, by
// clusters; scale and weight are applied to what is read.
//
// If each block read all of x, at 16 rows of 12,288 elements that were as many bytes as of its
// weights, more than the way from the L2 cache to a multiprocessor holds. Two blocks, a cluster,
// therefore share twice the rows of W and divide K: each reads half of x, and has twice the work to
// do while the next span is on its way (chain_sums.cuh: how their sums come together).
#ifndef TRITONRL_MODEL_CUDA_CHAIN_KERNEL_CUH_
#define TRITONRL_MODEL_CUDA_CHAIN_KERNEL_CUH_

#include "model/cuda/chain_stages.cuh"
#include "model/cuda/chain_sums.cuh"

namespace tritonrl {

// The part of a block that multiplies.
template <int kGroups>
class ChainMultiplier {
 public:
  using Shared = ChainShared<kGroups>;

  __device__ ChainMultiplier(const ChainArguments& at, const uint8_t* ring, Shared* shared)
      : at_(at), ring_(ring), shared_(*shared), sums_(shared) {}

  __device__ void Run() {
    for (int i = 0; i < at_.count; ++i) {
      if (i > 0) WaitForGrid();
      const LinkArguments& link = at_.links[i];
      const ChainRange spans = SpansOf(link);
      const ChainRange units = UnitsOf(link, cluster_);
      ChainInputs<kGroups> x;
      // What nobody takes must not be on its way when the next link asks.
      if (units.first < units.last && spans.first < spans.last) {
        x.Ask(link, at_.rows, spans.first, 0, &shared_);
      }
      if (link.norm_weight != nullptr) InverseOfRows(link);
      squares_ = 0;
      for (int unit = units.first; unit < units.last; unit += link.pass_units) {
        const int tiles = TilesOf(link, units.last - unit);
        const bool last = unit + link.pass_units >= units.last;
        if (tiles <= 2) {
          Pass<2>(link, unit, tiles, spans, last, &x);
        } else if (tiles <= 4) {
          Pass<4>(link, unit, tiles, spans, last, &x);
        } else {
          Pass<kChainTiles>(link, unit, tiles, spans, last, &x);
        }
      }
      if (link.squares_out != nullptr) StoreSquares(link);
    }
  }

 private:
  // Four neighbours of a row of `add` or `out`.
  struct alignas(8) Four {
    __nv_bfloat16 values[4];
  };

  // Until all blocks have come here; then what they wrote is seen by loads past L1.
  __device__ void WaitForGrid() {
    WaitForThreads(32 * kChainWarps);
    if (threadIdx.x == 0) {
      const uint64_t before = AddReleased(at_.arrivals);
      const uint64_t all = (before / gridDim.x + 1) * gridDim.x;
      while (LoadAcquired(at_.arrivals) < all) {
      }
    }
    WaitForThreads(32 * kChainWarps);
  }

  // inverse [8 kGroups] of rows of x.
  __device__ void InverseOfRows(const LinkArguments& link) {
    constexpr int kAtOnce = 5;  // loads, all on their way before the first is waited for
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float sums[kGroups] = {};
    for (int first = lane; first < clusters_; first += 32 * kAtOnce) {
      float parts[kGroups][kAtOnce];
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int m = warp + kChainWarps * group, cluster = first + 32 * i;
          parts[group][i] = m < at_.rows && cluster < clusters_
                                ? LoadOfGrid(link.squares_in + m * clusters_ + cluster)
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
      const int m = warp + kChainWarps * group;
      const float sum = WarpSum(sums[group]);
      if (lane == 0) {
        shared_.inverse[m] = m < at_.rows ? InverseRms(sum, link.inner, at_.eps) : 0.0f;
      }
    }
    WaitForThreads(32 * kChainWarps);
  }

  // By all threads of the warps that have them.
  __device__ void StoreSquares(const LinkArguments& link) const {
    if (!sums_.Owned()) return;
    float sum = squares_;
#pragma unroll
    for (int with = 1; with < 8; with *= 2) sum += __shfl_xor_sync(0xffffffff, sum, with);
    if (SumColumn() == 0 && SumRow() < at_.rows) {
      link.squares_out[SumRow() * clusters_ + cluster_] = sum;
    }
  }

  // `tiles`, at most kTiles, of the units from `unit` on. next: x's first span, asked for, as it is
  // afterwards for the pass behind unless this is the link's last.
  template <int kTiles>
  __device__ void Pass(const LinkArguments& link, int unit, int tiles, const ChainRange& spans,
                       bool last, ChainInputs<kGroups>* next) {
    // Asked for now, needed at the end.
    uint2 add[kTiles / 2];
#pragma unroll
    for (int pair = 0; pair < kTiles / 2; ++pair) {
      const bool there = link.add != nullptr && sums_.Owned() && SumRow() < at_.rows &&
                         2 * pair + SumColumn() / 16 < tiles;
      add[pair] = there ? LoadOfGrid8(link.add + PlaceOf(link, unit + 2 * pair)) : uint2{0, 0};
    }
    float total[kTiles][kGroups][4] = {};
    Multiply<kTiles>(link, tiles, spans, last, next, total);
    float4 sums[kTiles / 2];
    sums_.template AddUp<kTiles>(total, tiles, sums);
    if (!sums_.Owned()) return;
#pragma unroll
    for (int pair = 0; pair < kTiles / 2; ++pair) {
      if (2 * pair >= tiles) break;
      if (link.swiglu) {
        StoreGated(link, unit + pair, sums[pair]);
      } else if (SumRow() < at_.rows && 2 * pair + SumColumn() / 16 < tiles) {
        Store(link, unit + 2 * pair, sums[pair], *reinterpret_cast<const Four*>(&add[pair]));
      }
    }
  }

  // total += the warp's share of the products.
  template <int kTiles>
  __device__ void Multiply(const LinkArguments& link, int tiles, const ChainRange& spans, bool last,
                           ChainInputs<kGroups>* next, float (&total)[kTiles][kGroups][4]) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = RowOfLane();
    const uint8_t* const slice = ring_ + warp * kSliceBytes + 128 * row;
    for (int span = spans.first; span < spans.last; ++span) {
      next->Take(shared_);
      ChainInputs<kGroups> x = *next;
      if (span + 1 < spans.last || !last) {
        next->Ask(link, at_.rows, span + 1 < spans.last ? span + 1 : spans.first,
                  x.Bits() & at_.zero, &shared_);
      }
      if (link.norm_weight != nullptr) x.Norm(shared_.inverse);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        if (tile >= tiles) break;
        WaitForPhase(shared_.full + place_.slot, place_.parity);
        const uint8_t* stage = slice + place_.slot * kStageBytes;
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
            MultiplyAdd(total[tile][group], low.x, high.x, low.y, high.y, b.x, b.y);
          }
#pragma unroll
          for (int group = 0; group < kGroups; ++group) {
            const uint4& b = x.values[group][step];
            MultiplyAdd(total[tile][group], low.z, high.z, low.w, high.w, b.z, b.w);
          }
        }
        __syncwarp();
        // Not before the stage is in registers: an arrival overtakes loads from shared memory that
        // wait in their queue, and the next copy's first lines then overtake them too.
        if (lane == 0) Arrive(shared_.empty + place_.slot + (read & at_.zero));
        place_.Next();
      }
    }
  }

  // Of the thread's row in `add` or `out`: where its columns of a pair of tiles are.
  __device__ static int64_t PlaceOf(const LinkArguments& link, int unit) {
    return int64_t{SumRow()} * link.columns + unit * 16 + SumColumn();
  }

  __device__ void Store(const LinkArguments& link, int unit, const float4& sum, const Four& add) {
    const float sums[4] = {sum.x, sum.y, sum.z, sum.w};
    Four y;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      y.values[i] = Rounded<__nv_bfloat16>(sums[i] + ToFloat(add.values[i]));
      squares_ += ToFloat(y.values[i]) * ToFloat(y.values[i]);
    }
    *reinterpret_cast<Four*>(link.out + PlaceOf(link, unit)) = y;
  }

  // The thread 4 behind has the ups of this one's gates. By all threads of a warp.
  __device__ void StoreGated(const LinkArguments& link, int unit, const float4& sum) const {
    const float gates[4] = {sum.x, sum.y, sum.z, sum.w};
    float ups[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) ups[i] = __shfl_xor_sync(0xffffffff, gates[i], 4);
    if (SumColumn() >= 16 || SumRow() >= at_.rows) return;  // of zeros silu would divide slowly
    Four y;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      y.values[i] = GatedBySilu(Rounded<__nv_bfloat16>(gates[i]), Rounded<__nv_bfloat16>(ups[i]));
    }
    *reinterpret_cast<Four*>(link.out + PlaceOf(link, unit)) = y;
  }

  const ChainArguments& at_;
  const uint8_t* const ring_;
  Shared& shared_;
  const int cluster_ = blockIdx.x / kChainBlocks, clusters_ = gridDim.x / kChainBlocks;
  RingPlace<Shared::kStages> place_;
  ChainSums<kGroups> sums_;
  float squares_ = 0;  // of a link's out in the thread's row and columns
};

template <int kGroups>
__global__ void __launch_bounds__(kChainThreads, 1)
    ChainKernel(const __grid_constant__ ChainArguments at) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // else it is never launched
  using Shared = ChainShared<kGroups>;
  uint8_t* const ring = LaunchedSharedMemory();
  auto* const shared = reinterpret_cast<Shared*>(ring + Shared::kStages * kStageBytes);
  if (threadIdx.x == 0) {
    for (int i = 0; i < Shared::kStages; ++i) {
      InitBarrier(shared->full + i, 1);
      InitBarrier(shared->empty + i, kChainWarps);
    }
    for (int i = 0; i < 2; ++i) InitBarrier(shared->sent + i, 1);
    PublishBarriers();
  }
  __syncthreads();
  ArriveAtCluster();
  if (threadIdx.x / 32 >= kChainWarps) {
    GiveRegisters<40>();
    // Weights are nobody's result.
    if (threadIdx.x == 32 * kChainWarps) CopyWeights(at, ring, shared);
    __syncwarp();
    WaitForCluster();
    WaitForEarlierKernels();
    return;
  }
  TakeRegisters<232>();
  LetNextKernelBegin();
  WaitForEarlierKernels();
  WaitForCluster();  // the other block's barriers are there
  ChainMultiplier<kGroups>(at, ring, shared).Run();
#endif
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_CHAIN_KERNEL_CUH_
