// A warp's online softmax over the pages that it reads (decode_kernel.cuh).
#ifndef TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_SOFTMAX_CUH_
#define TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_SOFTMAX_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "model/cuda/common/ptx.cuh"
#include "rollout/cuda/attention/decode_page_pipeline.cuh"
#include "rollout/cuda/attention/decode_plan.h"

namespace tritonrl::decode {

// A softmax weight is at most 2^kSlack.
inline constexpr float kSlack = 6;

__device__ inline uint32_t Bits(__nv_bfloat162 pair) {
  return *reinterpret_cast<const uint32_t*>(&pair);
}
__device__ inline float2 PairOf(uint32_t bits) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&bits));
}
__device__ inline uint32_t Bits(__half2 pair) { return *reinterpret_cast<const uint32_t*>(&pair); }

// Converts the two E4M3 numbers in the low two bytes to fp16.
__device__ inline uint32_t HalvesOf(uint32_t bytes) {
  const __half2_raw pair =
      __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(bytes & 0xffff), __NV_E4M3);
  return static_cast<uint32_t>(pair.x) | static_cast<uint32_t>(pair.y) << 16;
}

// Queries of a unit: column c is head c % heads of row c / heads.
struct Columns {
  const __nv_bfloat16* queries;  // the first row's first head
  int row_elements;              // elements from a row to the next
  int rows, heads;
  int fewer;  // each row attends to this many tokens fewer than the next row
};

// Softmax and weighted sums of values of up to kOctets * 8 columns over the pages that a warp has
// read. With g = lane / 4 and t = lane % 4, a thread holds columns 2t and 2t + 1 of each octet. A
// column's result does not depend on the other columns.
template <typename Cached, int kDim, int kOctets>
class OnlineSoftmax {
 public:
  static constexpr bool kFp8 = sizeof(Cached) == 1;
  using Format = PageFormat<Cached, kDim>;

  __device__ explicit OnlineSoftmax(const Columns& of) {
    const int lane = threadIdx.x % 32;
    const int low = lane % 8 + lane / 8 % 2 * 8, high = lane % 8 + lane / 16 * 8;
    keys_ = KeepInRegister(Format::Place(low, lane / 16));
    values_ =
        KeepInRegister(kFp8 ? Format::Place(low, lane / 16) : Format::Place(high, lane / 8 % 2));
    values_ += Format::kBytes;  // values follow the keys
    max_fewer_ = (of.rows - 1) * of.fewer;
#pragma unroll
    for (int octet = 0; octet < kOctets; ++octet) {
      LoadQueries(of, octet);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int row = (octet * kGroupColumns + lane % 4 * 2 + i) / of.heads;
        fewer_[octet][i] = row < of.rows ? (of.rows - 1 - row) * of.fewer : 0;
        most_[octet][i] = -INFINITY;
      }
    }
  }

  // page: SharedAddress of a page's keys and values. The last row attends to its first `tokens`
  // tokens, or to all; the other tokens may be NaN. Returns a word of the page: the mma
  // instructions wait for all of the page to be read, and the one that waits for this word is among
  // the last.
  __device__ uint32_t Add(uint32_t page, int tokens, float scale_log2) {
    return tokens < kPageTokens + max_fewer_ ? AddTokens<false>(page, tokens, scale_log2)
                                             : AddTokens<true>(page, tokens, scale_log2);
  }

  // Stores an octet: its weighted sums of values to `sums` [columns, kDim], not divided; the
  // exponents' origins to `most` [columns]; the sums of weights to `most + totals` [columns].
  __device__ void Store(int octet, float* sums, float* most, int totals, int columns) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float total = totals_[octet][i];
#pragma unroll
      for (int step = 4; step < 32; step *= 2) total += __shfl_xor_sync(~0u, total, step);
      const int column = lane % 4 * 2 + i;
      if (column >= columns) continue;
      if (lane / 4 == 0) {
        most[column] = most_[octet][i];
        most[totals + column] = total;
      }
#pragma unroll
      for (int tile = 0; tile < kDim / 16; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          // With FP8 values, a tile's rows are its even elements, then its odd elements.
          const int element = kFp8 ? lane / 4 * 2 + half : lane / 4 + half * 8;
          sums[column * kDim + tile * 16 + element] = sums_[octet][tile][half * 2 + i];
        }
      }
    }
  }

 private:
  static constexpr int kSteps = kDim / 16;

  __device__ void LoadQueries(const Columns& of, int octet) {
    const int lane = threadIdx.x % 32, column = octet * kGroupColumns + lane / 4;
    const int row = column / of.heads;
    const __nv_bfloat16* queries =
        of.queries + int64_t{row} * of.row_elements + column % of.heads * kDim;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      // With FP8 keys a thread holds four adjacent elements, so the queries' elements must be in
      // that order too.
      const __nv_bfloat16* from = queries + step * 16 + lane % 4 * (kFp8 ? 4 : 2);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint32_t pair = 0;
        if (row < of.rows) {
          const auto x = *reinterpret_cast<const __nv_bfloat162*>(from + half * (kFp8 ? 2 : 8));
          pair = kFp8 ? Bits(__float22half2_rn(__bfloat1622float2(x))) : Bits(x);
        }
        queries_[octet][step][half] = pair;
      }
    }
  }

  template <bool kWhole>
  __device__ uint32_t AddTokens(uint32_t page, int tokens, float scale_log2) {
    float scores[kOctets][4] = {};
    Score(page + keys_, scores);
    if constexpr (!kWhole) {
      const int token = threadIdx.x % 32 / 4;
#pragma unroll
      for (int i = 0; i < 4 * kOctets; ++i) {
        if (token + i % 4 / 2 * 8 >= tokens - fewer_[i / 4][i % 2])
          scores[i / 4][i % 4] = -INFINITY;
      }
    }
    Raise(scores, scale_log2);
    uint32_t weights[kOctets][2];
#pragma unroll
    for (int octet = 0; octet < kOctets; ++octet) {
      WeightsOf<kWhole>(octet, scores[octet], scale_log2, weights[octet]);
    }
    return AddValues<kWhole>(page + values_, weights, tokens);
  }

  template <bool kWhole>
  __device__ void WeightsOf(int octet, float (&scores)[4], float scale_log2,
                            uint32_t (&weights)[2]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float most = most_[octet][i % 2];
      // A column without any token so far may have no token in this page either.
      const bool none = !kWhole && most == -INFINITY;
      scores[i] = none ? 0.0f : PowerOfTwo(fmaf(scores[i], scale_log2, -most));
      totals_[octet][i % 2] += scores[i];
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint32_t pair = kFp8 ? Bits(__floats2half2_rn(scores[2 * i], scores[2 * i + 1]))
                                 : Bits(__floats2bfloat162_rn(scores[2 * i], scores[2 * i + 1]));
      weights[i] = Transposed(pair);
    }
  }

  // scores [16 tokens, 8 columns] of each octet += keys x queries.
  __device__ void Score(uint32_t keys, float (&scores)[kOctets][4]) const {
    if constexpr (kFp8) {
#pragma unroll
      for (int step = 0; step < kSteps; step += 2) {
        uint32_t k[4];
        LoadMatrices(Format::Behind(keys, step / 2), k);
        const uint32_t low[4] = {HalvesOf(k[0]), HalvesOf(k[1]), HalvesOf(k[0] >> 16),
                                 HalvesOf(k[1] >> 16)};
        const uint32_t high[4] = {HalvesOf(k[2]), HalvesOf(k[3]), HalvesOf(k[2] >> 16),
                                  HalvesOf(k[3] >> 16)};
#pragma unroll
        for (int octet = 0; octet < kOctets; ++octet) {
          const auto& queries = queries_[octet];
          MmaFp16(scores[octet], low[0], low[1], low[2], low[3], queries[step][0],
                  queries[step][1]);
          MmaFp16(scores[octet], high[0], high[1], high[2], high[3], queries[step + 1][0],
                  queries[step + 1][1]);
        }
      }
    } else {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        uint32_t k[4];
        LoadMatrices(Format::Behind(keys, step), k);
#pragma unroll
        for (int octet = 0; octet < kOctets; ++octet) {
          MmaBf16(scores[octet], k[0], k[1], k[2], k[3], queries_[octet][step][0],
                  queries_[octet][step][1]);
        }
      }
    }
  }

  // Masks of the thread's two tokens in each half of the page: the 16 bits of a token are ones if
  // the token is used.
  __device__ static void MaskOf(int tokens, uint32_t (&masks)[2]) {
    const int token = threadIdx.x % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int left = tokens - token - 8 * half;
      masks[half] = left >= 2 ? 0xffffffff : left == 1 ? 0xffff : 0;
    }
  }

  // Raises a column's exponents' origin if a score of the page exceeds it by more than kSlack.
  __device__ void Raise(const float (&scores)[kOctets][4], float scale_log2) {
    float tops[2 * kOctets];
    bool higher = false;
#pragma unroll
    for (int i = 0; i < 2 * kOctets; ++i) {
      tops[i] = fmaxf(scores[i / 2][i % 2], scores[i / 2][2 + i % 2]) * scale_log2;
      higher |= tops[i] > most_[i / 2][i % 2] + kSlack;
    }
    if (!__any_sync(~0u, higher)) return;
#pragma unroll
    for (int i = 0; i < 2 * kOctets; ++i) {
      float top = tops[i];
#pragma unroll
      for (int step = 4; step < 32; step *= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
      float& most = most_[i / 2][i % 2];
      // A column is raised only for its own scores, so that its bits do not depend on others.
      if (!(top > most + kSlack)) continue;
      const float factor = PowerOfTwo(most - top);
      most = top;
      totals_[i / 2][i % 2] *= factor;
#pragma unroll
      for (int tile = 0; tile < kDim / 16; ++tile) {
        sums_[i / 2][tile][i % 2] *= factor;
        sums_[i / 2][tile][2 + i % 2] *= factor;
      }
    }
  }

  // sums [kDim, 8 columns] of each octet += values, transposed, x weights [16 tokens, 8 columns].
  // Returns a word of the values.
  template <bool kWhole>
  __device__ uint32_t AddValues(uint32_t values, const uint32_t (&weights)[kOctets][2],
                                int tokens) {
    uint32_t masks[2], read = 0;
    if constexpr (!kWhole) MaskOf(tokens, masks);
    if constexpr (kFp8) {
#pragma unroll
      for (int tile = 0; tile < kDim / 16; tile += 2) {
        uint32_t v[4];  // [tokens 2t, 2t + 1] of [elements 2g, 2g + 1]
        LoadTransposed(Format::Behind(values, tile / 2), v);
        read = v[0];
        if constexpr (!kWhole) {
#pragma unroll
          for (int i = 0; i < 4; ++i) v[i] &= masks[i % 2];
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const uint32_t even[2] = {__byte_perm(v[2 * i], 0, 0x4420),
                                    __byte_perm(v[2 * i + 1], 0, 0x4420)};
          const uint32_t odd[2] = {__byte_perm(v[2 * i], 0, 0x4431),
                                   __byte_perm(v[2 * i + 1], 0, 0x4431)};
          const uint32_t halves[4] = {HalvesOf(even[0]), HalvesOf(odd[0]), HalvesOf(even[1]),
                                      HalvesOf(odd[1])};
#pragma unroll
          for (int octet = 0; octet < kOctets; ++octet) {
            MmaFp16(sums_[octet][tile + i], halves[0], halves[1], halves[2], halves[3],
                    weights[octet][0], weights[octet][1]);
          }
        }
      }
    } else {
#pragma unroll
      for (int tile = 0; tile < kDim / 16; ++tile) {
        uint32_t v[4];
        LoadTransposed(Format::Behind(values, tile), v);
        read = v[0];
        if constexpr (!kWhole) {
#pragma unroll
          for (int i = 0; i < 4; ++i) v[i] &= masks[i / 2];
        }
#pragma unroll
        for (int octet = 0; octet < kOctets; ++octet) {
          MmaBf16(sums_[octet][tile], v[0], v[1], v[2], v[3], weights[octet][0], weights[octet][1]);
        }
      }
    }
    return read;
  }

  uint32_t keys_, values_;  // offsets in a page at which the lane starts to read
  uint32_t queries_[kOctets][kSteps][2];
  float sums_[kOctets][kDim / 16][4] = {};
  float most_[kOctets][2];         // exponents' origins: scaled scores near the largest so far
  float totals_[kOctets][2] = {};  // sums of the thread's weights
  int fewer_[kOctets][2];          // the column has this many tokens fewer than the last row
  int max_fewer_;
};

}  // namespace tritonrl::decode

#endif  // TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_SOFTMAX_CUH_
