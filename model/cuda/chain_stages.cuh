// What chain_kernel.cuh is told, its ring of weights, and x as its warps read and norm it.
#ifndef TRITONRL_MODEL_CUDA_CHAIN_STAGES_CUH_
#define TRITONRL_MODEL_CUDA_CHAIN_STAGES_CUH_

#include "model/cuda/chain_ptx.cuh"
#include "model/cuda/element.cuh"
#include "model/cuda/rms.cuh"
#include "model/cuda/tensor_boxes.h"

namespace tritonrl {

inline constexpr int kChainWarps = 8;  // that multiply; one more copies
// Registers are had by four warps together: those beside the one that copies give away theirs.
inline constexpr int kChainThreads = 32 * (kChainWarps + 4);
inline constexpr int kChainSpan = 64 * kChainWarps;  // elements of K in a stage
inline constexpr int kSliceBytes = 16 * 128;         // 64 elements of 16 rows
inline constexpr int kStageBytes = kChainWarps * kSliceBytes;
inline constexpr int kMostLinks = 4;
inline constexpr int kChainTiles = 6;   // most of a pass, an even number
inline constexpr int kSumPitch = 36;    // floats from one row of x to the next among a warp's sums
inline constexpr int kChainBlocks = 2;  // of a cluster, which share K
inline constexpr int kChainSharedBytes = 227 << 10;  // that a block has

// Stages of W [columns, inner] of bf16.
inline TensorBoxes StageBoxes(const void* weight, int64_t columns, int64_t inner) {
  return {weight, 2, {64, columns, inner / 64}, {2 * inner, 128}, {64, 16, kChainWarps}};
}

// What a block has in shared memory behind its ring, for kGroups groups of 8 rows of x.
template <int kGroups>
struct ChainRest {
  static constexpr int kOwned = 4 * kGroups;  // rows of x whose sums a block finishes

  uint4 parked[2 * kGroups][32 * kChainWarps];  // the next span of x, by threads that read it
  float sums[kChainWarps * 8 * kGroups * kSumPitch];
  // What the other block has of sums that this one finishes: of a pass and of the one before.
  float received[2][kChainTiles / 2][kOwned][32];
  float inverse[8 * kGroups];
  SharedBarrier sent[2];  // what is in `received`
};

template <int kGroups>
struct ChainShared : ChainRest<kGroups> {
  static constexpr int kStages =
      (kChainSharedBytes - static_cast<int>(sizeof(ChainRest<kGroups>))) /
      (kStageBytes + 2 * static_cast<int>(sizeof(SharedBarrier)));
  SharedBarrier full[kStages], empty[kStages];
};

// out = x W^T (+ add), or with swiglu silu(x gates^T) * (x ups^T).
struct LinkArguments {
  CUtensorMap weights;  // [K / 64, N, 64], boxes of a stage
  const __nv_bfloat16* x;
  const __nv_bfloat16* norm_weight;  // null: x as it is
  const __nv_bfloat16* add;          // null: none
  __nv_bfloat16* out;
  const float* squares_in;  // [rows, clusters] sums of squares of x; with norm_weight
  float* squares_out;       // the same of out; null: nobody needs them
  int inner;                // K
  int columns;              // of out: N, or N / 2 with swiglu
  bool swiglu;
  int units_each;  // a cluster's: tiles of 16 rows of W, or with swiglu pairs of such
  int pass_units;
};

struct ChainArguments {
  int rows;
  float eps;
  int count;
  uint32_t zero;  // 0, which the compiler does not know
  LinkArguments links[kMostLinks];
  uint64_t* arrivals;  // of blocks, in all launches
};

// [first, last).
struct ChainRange {
  int first, last;
};
// A cluster's units of a link.
__device__ inline ChainRange UnitsOf(const LinkArguments& link, int cluster) {
  const int units = link.columns / 16;
  const int first = min(cluster * link.units_each, units);
  return {first, min(first + link.units_each, units)};
}
// A block's spans of K.
__device__ inline ChainRange SpansOf(const LinkArguments& link) {
  const int spans = link.inner / kChainSpan;
  const int half = (spans + 1) / 2;
  return blockIdx.x % 2 == 0 ? ChainRange{0, half} : ChainRange{half, spans};
}
// Tiles of a pass of `units` units or fewer.
__device__ inline int TilesOf(const LinkArguments& link, int units) {
  return min(units, link.pass_units) * (link.swiglu ? 2 : 1);
}

// Units of a cluster and of its passes, of which as few as can be.
inline void DivideUnits(int clusters, LinkArguments* link) {
  const auto divided = [](int n, int by) { return (n + by - 1) / by; };
  link->units_each = divided(link->columns / 16, clusters);
  const int most = link->swiglu ? kChainTiles / 2 : kChainTiles;
  link->pass_units = divided(link->units_each, divided(link->units_each, most));
}

// Runs through the stages of a ring: which place, and the parity of its phase.
template <int kStages>
struct RingPlace {
  int slot = 0;
  uint32_t parity = 0;
  __device__ void Next() {
    if (++slot == kStages) {
      slot = 0;
      parity ^= 1;
    }
  }
};

// Copies a block's weights of all links, by one thread: a stage as soon as all that multiply have
// read what was there.
template <int kGroups>
__device__ void CopyWeights(const ChainArguments& at, uint8_t* ring, ChainShared<kGroups>* shared) {
  const uint64_t policy = EvictFirstPolicy();
  RingPlace<ChainShared<kGroups>::kStages> place;
  for (int i = 0; i < at.count; ++i) {
    const LinkArguments& link = at.links[i];
    const ChainRange units = UnitsOf(link, blockIdx.x / kChainBlocks);
    const ChainRange spans = SpansOf(link);
    for (int unit = units.first; unit < units.last; unit += link.pass_units) {
      const int tiles = TilesOf(link, units.last - unit);
      for (int span = spans.first; span < spans.last; ++span) {
        for (int tile = 0; tile < tiles; ++tile) {
          const int row =
              link.swiglu ? tile % 2 * link.columns + (unit + tile / 2) * 16 : (unit + tile) * 16;
          SharedBarrier* const full = shared->full + place.slot;
          WaitForPhase(shared->empty + place.slot, place.parity ^ 1);
          ArriveAndExpect(full, kStageBytes);
          CopyBox(ring + place.slot * kStageBytes, &link.weights, 0, row, span * (kChainSpan / 64),
                  full, policy);
          place.Next();
        }
      }
    }
  }
}

// A thread's share of x in a span: row m = 8 group + lane / 4, elements 8 (lane % 4) and 32 behind.
template <int kGroups>
struct ChainInputs {
  uint4 values[kGroups][2];
  uint4 norm[2];

  // Begins to read them; Take has them. zero: 0, known once what was taken before is in registers.
  __device__ void Ask(const LinkArguments& link, int rows, int span, uint32_t zero,
                      ChainShared<kGroups>* shared) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int k = span * kChainSpan + warp * 64 + 8 * (lane % 4);
#pragma unroll
    for (int step = 0; step < 2; ++step) {
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        const int m = 8 * group + lane / 4;
        const __nv_bfloat16* const from = link.x + int64_t{m} * link.inner + k + 32 * step;
        CopyAsync(&shared->parked[2 * group + step][threadIdx.x + zero], m < rows ? from : link.x,
                  m < rows ? 16 : 0);
      }
      if (link.norm_weight != nullptr) {
        norm[step] = *reinterpret_cast<const uint4*>(link.norm_weight + k + 32 * step);
      }
    }
    EndCopies();
  }

  __device__ void Take(const ChainShared<kGroups>& shared) {
    WaitForCopies<0>();
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        values[group][step] = shared.parked[2 * group + step][threadIdx.x];
      }
    }
  }

  // Bits of all that was taken.
  __device__ uint32_t Bits() const {
    uint32_t bits = 0;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) bits |= values[group][0].x | values[group][1].x;
    return bits;
  }

  // inverse: by rows of x.
  __device__ void Norm(const float* inverse) {
#pragma unroll
    for (int step = 0; step < 2; ++step) {
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        const int m = 8 * group + threadIdx.x % 32 / 4;
        const auto normed = Normed(As(values[group][step]), As(norm[step]), inverse[m]);
        values[group][step] = *reinterpret_cast<const uint4*>(&normed);
      }
    }
  }

 private:
  __device__ static Pack<__nv_bfloat16> As(const uint4& x) {
    return *reinterpret_cast<const Pack<__nv_bfloat16>*>(&x);
  }
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_CUDA_CHAIN_STAGES_CUH_
