// How sums of chain_kernel.cuh come together: those of a block's warps, which each have some of K,
// and of the two blocks of a cluster.
#ifndef TRITONRL_MODEL_CUDA_CHAIN_SUMS_CUH_
#define TRITONRL_MODEL_CUDA_CHAIN_SUMS_CUH_

#include "model/cuda/chain_stages.cuh"

namespace tritonrl {

// Of a tile's first 8: which the thread has as row lane / 4 of its operand. Neighbours are 4
// apart, so that 8 threads that load together meet all banks in spite of the swizzle.
__device__ inline int RowOfLane() {
  const int row = threadIdx.x % 32 / 4;
  return row / 2 + row % 2 * 4;
}

// Of sums of a pair of tiles the thread adds up those of row SumRow() of x, from column SumColumn()
// of 32 on.
__device__ inline int SumRow() { return threadIdx.x / 8; }
__device__ inline int SumColumn() { return threadIdx.x % 8 * 4; }

// By the threads that multiply. At the end of a pass each block sends the other its sums of half of
// the rows of x through shared memory. Two buffers suffice: what is sent for a pass is sent after
// all of the other block have read what was sent two passes before, as they tell with what they
// send in between.
template <int kGroups>
class ChainSums {
 public:
  using Shared = ChainShared<kGroups>;

  __device__ explicit ChainSums(Shared* shared) : shared_(*shared) {}

  // Whether this block finishes the thread's sums; of a warp all or none.
  __device__ bool Owned() const { return SumRow() / Shared::kOwned == rank_; }

  // sums: of all warps of the cluster, by pairs of tiles, where the block finishes them. Rows that
  // x does not have are sent too: a block that waited for nothing would run ahead of the other.
  template <int kTiles>
  __device__ void AddUp(const float (&total)[kTiles][kGroups][4], int tiles,
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
      KeepSums<kTiles>(total, pair);
      WaitForThreads(32 * kChainWarps);
      if (SumRow() < 2 * Shared::kOwned) sums[pair] = SumOfWarps();
      if (SumRow() < 2 * Shared::kOwned && !Owned()) {
        StoreInBlock(&received[pair][SumRow() % Shared::kOwned][SumColumn()], 1 - rank_, sums[pair],
                     sent);
      }
      WaitForThreads(32 * kChainWarps);
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

  __device__ float4 SumOfWarps() const {
    float4 sum = {0, 0, 0, 0};
#pragma unroll
    for (int warp = 0; warp < kChainWarps; ++warp) {
      const float* from = shared_.sums + (warp * 8 * kGroups + SumRow()) * kSumPitch + SumColumn();
      AddTo(*reinterpret_cast<const float4*>(from), &sum);
    }
    return sum;
  }

  Shared& shared_;
  const int rank_ = blockIdx.x % kChainBlocks;  // of the block in its cluster
  int pass_ = 0;                                // of all links
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_CHAIN_SUMS_CUH_
