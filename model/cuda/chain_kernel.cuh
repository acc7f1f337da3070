// The kernel of product_chain.h: products of few rows one behind the other in one launch, bound by
// reading their weights once.
//
// Between launches the memory stands still: the last sums are added and written, the next kernel
// starts, asks for its first weights and waits a microsecond for them, three to four microseconds
// of each of a layer's products, which take 8 to 47. Here one block on each multiprocessor runs
// through all products of the chain. A warp of its own copies the block's rows of all weights,
// product after product, into a ring of some 200 KB, as fast as stages of it become free: when
// blocks wait for each other between two products, it goes on for six microseconds' worth of
// memory. It begins even before the kernel in front of the chain has ended.
//
// A stage is 16 rows of W by 512 elements, one copy by the tensor memory accelerator (of 16 copies
// of 1 KB each the issue alone took 0.65 us, as long as memory takes for 21 KB). Each of 8 warps
// multiplies 64 of the elements (tensor cores, m16n8k16, W as operand A and x, padded to 8 or 16
// rows, as B) and keeps sums of its own; at the end of a pass, of up to six tiles of 16 rows that
// share what is read of x, the warps' sums are added in order. In which order k is summed is free
// as long as A and B agree: thread t of four takes elements 8t to 8t + 7 of 32 as k 2t, 2t + 1, 2t
// + 8, 2t + 9 of two mma, so that loads are of 16 bytes. A row's bits do not depend on its company.
//
// x is read past L1 (other blocks have just written it), a span ahead. RMSNorm's sums of squares
// come from the product that wrote x, by blocks; scale and weight are applied to what is read.
#ifndef TRITONRL_MODEL_CUDA_CHAIN_KERNEL_CUH_
#define TRITONRL_MODEL_CUDA_CHAIN_KERNEL_CUH_

#include "model/cuda/chain_stages.cuh"

namespace tritonrl {

// The part of a block that multiplies.
template <int kGroups>
class ChainMultiplier {
 public:
  static constexpr int kStages = kChainStages<kGroups>;

  __device__ ChainMultiplier(const ChainArguments& at, uint8_t* ring, float* sums, float* inverse,
                             SharedBarrier* full, SharedBarrier* empty)
      : at_(at), ring_(ring), sums_(sums), inverse_(inverse), full_(full), empty_(empty) {}

  __device__ void Run() {
    for (int i = 0; i < at_.count; ++i) {
      if (i > 0) WaitForGrid();
      const LinkArguments& link = at_.links[i];
      ChainInputs<kGroups> x;
      x.Load(link, at_.rows, 0);
      if (link.norm_weight != nullptr) InverseOfRows(link);
#pragma unroll
      for (int group = 0; group < kGroups; ++group) squares_[group] = 0;
      const UnitRange units = UnitsOf(link);
      for (int unit = units.first; unit < units.last; unit += link.pass_units) {
        const int tiles = TilesOf(link, units.last - unit);
        if (tiles <= 2) {
          Pass<2>(link, unit, tiles, x);
        } else if (tiles <= 4) {
          Pass<4>(link, unit, tiles, x);
        } else {
          Pass<kChainTiles>(link, unit, tiles, x);
        }
      }
      if (link.squares_out != nullptr) StoreSquares(link);
    }
  }

 private:
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
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int blocks = gridDim.x;
    for (int m = warp; m < 8 * kGroups; m += kChainWarps) {
      float sum = 0;
      for (int i = lane; m < at_.rows && i < blocks; i += 32) {
        sum += LoadOfGrid(link.squares_in + m * blocks + i);
      }
      sum = WarpSum(sum);
      if (lane == 0) inverse_[m] = m < at_.rows ? InverseRms(sum, link.inner, at_.eps) : 0.0f;
    }
    WaitForThreads(32 * kChainWarps);
  }

  __device__ void StoreSquares(const LinkArguments& link) const {
    const int warp = threadIdx.x / 32;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const int m = warp + kChainWarps * group;
      if (threadIdx.x % 32 == 0 && m < at_.rows) {
        link.squares_out[m * gridDim.x + blockIdx.x] = squares_[group];
      }
    }
  }

  // `tiles`, at most kTiles, of the units from `unit` on. first: x's first span.
  template <int kTiles>
  __device__ void Pass(const LinkArguments& link, int unit, int tiles,
                       const ChainInputs<kGroups>& first) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int spans = link.inner / kChainSpan;
    // Asked for now, needed at the end.
    float add[kTiles / 2][kGroups];
#pragma unroll
    for (int pair = 0; pair < kTiles / 2; ++pair) {
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        const int m = warp + kChainWarps * group;
        const bool there = link.add != nullptr && m < at_.rows && 2 * pair + lane / 16 < tiles;
        add[pair][group] = there ? AddOf(link, m, (unit + 2 * pair) * 16 + lane) : 0.0f;
      }
    }
    float total[kTiles][kGroups][4] = {};
    ChainInputs<kGroups> next = first;
    const int row = RowOfLane();
    const uint8_t* const slice = ring_ + warp * kSliceBytes + 128 * row;
    for (int span = 0; span < spans; ++span) {
      ChainInputs<kGroups> x = next;
      if (span + 1 < spans) next.Load(link, at_.rows, span + 1);
      if (link.norm_weight != nullptr) x.Norm(inverse_);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        if (tile >= tiles) break;
        WaitForPhase(full_ + place_.slot, place_.parity);
        const uint8_t* stage = slice + place_.slot * kStageBytes;
        uint32_t read = 0;
#pragma unroll
        for (int step = 0; step < 2; ++step) {
          const int pack = (lane % 4 + 4 * step) ^ row;  // as copies swizzle lines of 128 bytes
          const uint4 low = *reinterpret_cast<const uint4*>(stage + 16 * pack);
          const uint4 high = *reinterpret_cast<const uint4*>(stage + 1024 + 16 * pack);
          read |= low.x | high.x;
#pragma unroll
          for (int group = 0; group < kGroups; ++group) {
            const uint4& b = x.values[group][step];
            MultiplyAdd(total[tile][group], low.x, high.x, low.y, high.y, b.x, b.y);
            MultiplyAdd(total[tile][group], low.z, high.z, low.w, high.w, b.z, b.w);
          }
        }
        __syncwarp();
        // Not before the stage is in registers: an arrival overtakes loads from shared memory that
        // wait in their queue, and the next copy's first lines then overtake them too.
        if (lane == 0) Arrive(empty_ + place_.slot + (read & at_.zero));
        place_.Next();
      }
    }
#pragma unroll
    for (int pair = 0; pair < kTiles / 2; ++pair) {
      if (2 * pair >= tiles) break;
      KeepSums<kTiles>(total, pair);
      WaitForThreads(32 * kChainWarps);
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        const int m = warp + kChainWarps * group;
        if (m < at_.rows) Store(link, m, unit, pair, tiles, add[pair][group], &squares_[group]);
      }
      WaitForThreads(32 * kChainWarps);
    }
  }

  // Of a tile's first 8: which the thread has as row lane / 4 of its operand. Neighbours are 4
  // apart, so that 8 threads that load together meet all banks in spite of the swizzle.
  __device__ static int RowOfLane() {
    const int row = threadIdx.x % 32 / 4;
    return row / 2 + row % 2 * 4;
  }

  __device__ static float AddOf(const LinkArguments& link, int m, int column) {
    return ToFloat(LoadOfGrid(link.add + int64_t{m} * link.columns + column));
  }

  // sums [warps, 8 kGroups, kSumPitch] of two tiles.
  template <int kTiles>
  __device__ void KeepSums(const float (&total)[kTiles][kGroups][4], int pair) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int m = 8 * group + 2 * (lane % 4) + i % 2;
          const int row = 16 * half + RowOfLane() + 8 * (i / 2);
          sums_[(warp * 8 * kGroups + m) * kSumPitch + row] = total[2 * pair + half][group][i];
        }
      }
    }
  }

  __device__ float SumOf(int m, int row) const {
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < kChainWarps; ++warp) {
      sum += sums_[(warp * 8 * kGroups + m) * kSumPitch + row];
    }
    return sum;
  }

  // Row m of a pair of tiles, by a warp. Adds the lane's share of its squares.
  __device__ void Store(const LinkArguments& link, int m, int unit, int pair, int tiles, float add,
                        float* squares) const {
    const int lane = threadIdx.x % 32;
    __nv_bfloat16* const to = link.out + int64_t{m} * link.columns;
    if (link.swiglu) {
      if (lane >= 16) return;
      to[(unit + pair) * 16 + lane] = GatedBySilu(Rounded<__nv_bfloat16>(SumOf(m, lane)),
                                                  Rounded<__nv_bfloat16>(SumOf(m, 16 + lane)));
      return;
    }
    const bool there = 2 * pair + lane / 16 < tiles;
    const __nv_bfloat16 y = Rounded<__nv_bfloat16>(SumOf(m, lane) + add);
    if (there) to[(unit + 2 * pair) * 16 + lane] = y;
    if (link.squares_out == nullptr) return;
    *squares += WarpSum(there ? ToFloat(y) * ToFloat(y) : 0.0f);
  }

  const ChainArguments& at_;
  uint8_t* const ring_;
  float* const sums_;
  float* const inverse_;
  SharedBarrier *const full_, *const empty_;
  RingPlace<kStages> place_;
  float squares_[kGroups];  // of row warp + 8 group of a link's out
};

template <int kGroups>
__global__ void __launch_bounds__(kChainThreads, 1)
    ChainKernel(const __grid_constant__ ChainArguments at) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // else it is never launched
  constexpr int kStages = kChainStages<kGroups>;
  uint8_t* const ring = LaunchedSharedMemory();
  auto* const sums = reinterpret_cast<float*>(ring + kStages * kStageBytes);
  __shared__ float inverse[8 * kGroups];
  __shared__ SharedBarrier full[kStages], empty[kStages];
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      InitBarrier(full + i, 1);
      InitBarrier(empty + i, kChainWarps);
    }
    PublishBarriers();
  }
  __syncthreads();
  if (threadIdx.x / 32 == kChainWarps) {
    // Weights are nobody's result.
    if (threadIdx.x % 32 == 0) CopyWeights<kStages>(at, ring, full, empty);
    WaitForEarlierKernels();
    return;
  }
  LetNextKernelBegin();
  WaitForEarlierKernels();
  ChainMultiplier<kGroups>(at, ring, sums, inverse, full, empty).Run();
#endif
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_CHAIN_KERNEL_CUH_
