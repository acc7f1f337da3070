// The kernel of skinny_product.h: y = x W^T with W [N, K] read once, as fast as memory gives it.
//
// A block of 8 warps takes passes of 16, 32 or 48 rows of W. The warps divide K among them, 64
// elements (a line of 128 bytes of each row) each in turn, and their sums are added in the order of
// warps at the end of a pass. A piece is 64 elements of 16 rows: the operand A of four
// mma.m16n8k16, to which x is the operand B, padded with zeros to 8 or 16 columns. What counts:
//
// - Bytes under way. Memory answers after about a microsecond under load, so that 4.25 TB/s take 33
//   KB under way on each of 132 multiprocessors. A warp has a ring of 6 pieces of 2 KB (5 for more
//   than 8 rows of x) that cp.async fills: 80 to 96 KB a block, at any time and across passes. Each
//   thread copies just those 64 bytes of a piece that it needs itself, so that nothing waits for
//   other threads: no barrier but the two at the end of a pass.
// - Issue slots. At 4.25 TB/s a multiprocessor gets 18 bytes a cycle, a piece every 114 cycles. It
//   takes 4 copies, 4 loads from shared memory, 4 mma (8 for more than 8 rows) and about 50
//   instructions for addresses, of 456 that fit. FMA would take 32 (1 + M) for its 1,024 elements
//   and loads of x besides: enough for one row, the limit at 8, too many at 16.
// - Fragments without shuffles. In what order k is summed is free as long as A and B agree: thread
// t
//   of four takes elements 8t to 8t + 7 of 32 (one copy of 16 bytes) as k 2t, 2t + 1, 2t + 8, 2t +
//   9 of two mma. The same order for all M, so that a row's bits do not depend on its company.
// - x is read from L1 or L2 by each warp where it needs it, one step ahead: M / 16, 32 or 48 of W's
//   bytes. Several tiles share it, hence passes of more than 16 rows.
#ifndef TRITONRL_MODEL_CUDA_SKINNY_KERNEL_CUH_
#define TRITONRL_MODEL_CUDA_SKINNY_KERNEL_CUH_

#include "model/cuda/element.cuh"
#include "model/cuda/skinny_inputs.cuh"
#include "model/cuda/skinny_ptx.cuh"

namespace tritonrl {

// Pieces in a warp's ring, for kGroups groups of 8 rows of x: two blocks fit on a multiprocessor
// that has 227 KB of shared memory, so that the next product's can begin beside this one's.
template <int kGroups>
constexpr int kSkinnySlots = kGroups == 1 ? 6 : 5;

// Floats from one row of x to the next among a warp's sums: writing them meets 32 banks.
template <int kTiles>
constexpr int kSumPitch = 16 * kTiles + 4;

template <int kTiles, int kGroups>
constexpr int SkinnySharedBytes() {
  return kSkinnyWarps * (kSkinnySlots<kGroups> * kPiecePacks * 16 +
                         8 * kGroups * kSumPitch<kTiles> * static_cast<int>(sizeof(float)));
}

// The row of W with which a tile begins, and how many there are from there on.
struct SkinnyTile {
  int64_t first, left;
};
template <int kTiles>
__device__ SkinnyTile TileOf(const SkinnyArguments& at, int pass, int tile) {
  if (at.swiglu) {
    const int64_t row = int64_t{pass} * 16;
    return {tile * at.columns + row, at.columns - row};
  }
  const int64_t row = (int64_t{pass} * kTiles + tile) * 16;
  return {row, at.columns - row};
}

// Copies the pieces of W to a ring in the order of their use: tiles, spans, passes.
template <int kTiles>
class WeightFeed {
 public:
  __device__ WeightFeed(const SkinnyArguments& at, uint4* ring)
      : at_(at), ring_(ring), policy_(EvictFirstPolicy()), pass_(blockIdx.x) {}

  // Begins the next piece. Behind the last one there is an empty group, so that groups count calls.
  __device__ void Fill(int slot) {
    if (pass_ < at_.passes) {
      Copy(ring_ + slot * kPiecePacks);
      if (++tile_ == kTiles) {
        tile_ = 0;
        if (++span_ == at_.spans) {
          span_ = 0;
          pass_ += gridDim.x;
        }
      }
    }
    CommitCopies();
  }

 private:
  __device__ void Copy(uint4* to) const {
    const SkinnyTile tile = TileOf<kTiles>(at_, pass_, tile_);
    const int row = threadIdx.x % 32 / 4;
    const int64_t k = InnerOf(span_);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        const bool there = row + 8 * half < tile.left && k + 32 * step < at_.inner;
        const int64_t place = (tile.first + row + 8 * half) * at_.inner + k + 32 * step;
        CopyAsync(to + (2 * step + half) * 32, at_.weight + (there ? place : 0), there, policy_);
      }
    }
  }

  const SkinnyArguments& at_;
  uint4* const ring_;  // where the lane's packs lie
  const uint64_t policy_;
  int pass_, span_ = 0, tile_ = 0;
};

// Adds the warps' sums of a pass and writes what comes of them. sums [warps, 8 kGroups, kSumPitch].
template <int kTiles, int kGroups>
__device__ void StorePass(const SkinnyArguments& at, int pass, const float* sums) {
  const auto sum_of = [sums](int m, int row) {
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < kSkinnyWarps; ++warp) {
      sum += sums[(warp * 8 * kGroups + m) * kSumPitch<kTiles> + row];
    }
    return sum;
  };
  const int each = at.swiglu ? 16 : 16 * kTiles;
  for (int i = threadIdx.x; i < each * at.rows; i += kSkinnyThreads) {
    const int m = i / each, row = i % each;
    const int64_t column = int64_t{pass} * each + row;
    if (column >= at.columns) continue;
    const int64_t place = m * at.columns + column;
    float y = sum_of(m, row);
    if (at.add != nullptr) y += ToFloat(at.add[place]);
    if (at.wide) {
      static_cast<float*>(at.out)[place] = y;
      continue;
    }
    __nv_bfloat16 rounded = Rounded<__nv_bfloat16>(y);
    if constexpr (kTiles == 2) {
      if (at.swiglu) rounded = GatedBySilu(rounded, Rounded<__nv_bfloat16>(sum_of(m, 16 + row)));
    }
    static_cast<__nv_bfloat16*>(at.out)[place] = rounded;
  }
}

// kTiles: of 16 rows of W in a pass; kGroups: of 8 rows of x. kNorm: x is normed first, by each
// block for itself, while its first pieces of W are under way.
template <int kTiles, int kGroups, bool kNorm>
__global__ void __launch_bounds__(kSkinnyThreads, 2)
    SkinnyKernel(const __grid_constant__ SkinnyArguments at) {
  constexpr int kSlots = kSkinnySlots<kGroups>;
  uint4* const shared = LaunchedSharedMemory();
  __shared__ float inverse[8 * kGroups];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  uint4* const ring = shared + warp * kSlots * kPiecePacks + lane;
  auto* const sums = reinterpret_cast<float*>(shared + kSkinnyWarps * kSlots * kPiecePacks);
  LetNextKernelBegin();
  WeightFeed<kTiles> feed(at, ring);
  for (int slot = 0; slot < kSlots; ++slot) feed.Fill(slot);
  WaitForEarlierKernels();  // weights are nobody's result, all else may be
  if constexpr (kNorm) InverseOfRows<kGroups>(at, inverse);
  SkinnyInputs<kGroups, kNorm> next;
  next.Load(at, 0);
  int slot = 0;
  for (int pass = blockIdx.x; pass < at.passes; pass += gridDim.x) {
    float total[kTiles][kGroups][4] = {};
    for (int span = 0; span < at.spans; ++span) {
      SkinnyInputs<kGroups, kNorm> x = next;
      next.Load(at, span + 1 < at.spans ? span + 1 : 0);
      x.Norm(inverse);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        WaitForCopies<kSlots - 1>();
        const uint4* piece = ring + slot * kPiecePacks;
#pragma unroll
        for (int step = 0; step < 2; ++step) {
          const uint4 low = piece[2 * step * 32], high = piece[(2 * step + 1) * 32];
#pragma unroll
          for (int group = 0; group < kGroups; ++group) {
            const uint4& b = x.values[group][step];
            MultiplyAdd(total[tile][group], low.x, high.x, low.y, high.y, b.x, b.y);
            MultiplyAdd(total[tile][group], low.z, high.z, low.w, high.w, b.z, b.w);
          }
        }
        feed.Fill(slot);
        slot = slot + 1 < kSlots ? slot + 1 : 0;
      }
    }
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int m = 8 * group + 2 * (lane % 4) + i % 2;
          const int row = 16 * tile + lane / 4 + 8 * (i / 2);
          sums[(warp * 8 * kGroups + m) * kSumPitch<kTiles> + row] = total[tile][group][i];
        }
      }
    }
    __syncthreads();
    StorePass<kTiles, kGroups>(at, pass, sums);
    __syncthreads();
  }
}

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_SKINNY_KERNEL_CUH_
