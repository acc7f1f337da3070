// What chain_kernel.cuh is told, its ring of weights, and x as its warps read and norm it.
#ifndef TRITONRL_MODEL_CUDA_CHAIN_STAGES_CUH_
#define TRITONRL_MODEL_CUDA_CHAIN_STAGES_CUH_

#include "model/cuda/chain_ptx.cuh"
#include "model/cuda/element.cuh"
#include "model/cuda/rms.cuh"

namespace tritonrl {

inline constexpr int kChainWarps = 8;  // that multiply; one more copies
inline constexpr int kChainThreads = 32 * (kChainWarps + 1);
inline constexpr int kChainSpan = 64 * kChainWarps;  // elements of K in a stage
inline constexpr int kSliceBytes = 16 * 128;         // 64 elements of 16 rows
inline constexpr int kStageBytes = kChainWarps * kSliceBytes;
inline constexpr int kMostLinks = 4;
inline constexpr int kSumPitch = 36;  // floats from one row of x to the next among a warp's sums

// For kGroups groups of 8 rows of x.
template <int kGroups>
constexpr int kChainStages = kGroups == 1 ? 13 : 12;
inline constexpr int kChainTiles = 6;  // most of a pass

template <int kGroups>
constexpr int ChainSharedBytes() {
  return kChainStages<kGroups> * kStageBytes +
         kChainWarps * 8 * kGroups * kSumPitch * static_cast<int>(sizeof(float));
}

// out = x W^T (+ add), or with swiglu silu(x gates^T) * (x ups^T).
struct LinkArguments {
  CUtensorMap weights;  // [K / 64, N, 64], boxes of a stage
  const __nv_bfloat16* x;
  const __nv_bfloat16* norm_weight;  // null: x as it is
  const __nv_bfloat16* add;          // null: none
  __nv_bfloat16* out;
  const float* squares_in;  // [rows, blocks] sums of squares of x; with norm_weight
  float* squares_out;       // the same of out; null: nobody needs them
  int inner;                // K
  int columns;              // of out: N, or N / 2 with swiglu
  bool swiglu;
  int units_each;  // a block's: tiles of 16 rows of W, or with swiglu pairs of such
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

// A block's units of a link are [first, last).
struct UnitRange {
  int first, last;
};
__device__ inline UnitRange UnitsOf(const LinkArguments& link) {
  const int units = link.columns / 16;
  const int first = min(static_cast<int>(blockIdx.x) * link.units_each, units);
  return {first, min(first + link.units_each, units)};
}
__device__ inline int TilesOf(const LinkArguments& link, int units) {
  return min(units, link.pass_units) * (link.swiglu ? 2 : 1);
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
template <int kStages>
__device__ void CopyWeights(const ChainArguments& at, uint8_t* ring, SharedBarrier* full,
                            SharedBarrier* empty) {
  const uint64_t policy = EvictFirstPolicy();
  RingPlace<kStages> place;
  for (int i = 0; i < at.count; ++i) {
    const LinkArguments& link = at.links[i];
    const UnitRange units = UnitsOf(link);
    for (int unit = units.first; unit < units.last; unit += link.pass_units) {
      const int tiles = TilesOf(link, units.last - unit);
      for (int k = 0; k < link.inner; k += kChainSpan) {
        for (int tile = 0; tile < tiles; ++tile) {
          const int row =
              link.swiglu ? tile % 2 * link.columns + (unit + tile / 2) * 16 : (unit + tile) * 16;
          WaitForPhase(empty + place.slot, place.parity ^ 1);
          ArriveAndExpect(full + place.slot, kStageBytes);
          CopyBox(ring + place.slot * kStageBytes, &link.weights, 0, row, k / 64, full + place.slot,
                  policy);
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

  __device__ void Load(const LinkArguments& link, int rows, int span) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int k = span * kChainSpan + warp * 64 + 8 * (lane % 4);
#pragma unroll
    for (int step = 0; step < 2; ++step) {
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        const int m = 8 * group + lane / 4;
        values[group][step] = m < rows
                                  ? LoadOfGrid16(link.x + int64_t{m} * link.inner + k + 32 * step)
                                  : uint4{0, 0, 0, 0};
      }
      if (link.norm_weight != nullptr) {
        norm[step] = *reinterpret_cast<const uint4*>(link.norm_weight + k + 32 * step);
      }
    }
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
