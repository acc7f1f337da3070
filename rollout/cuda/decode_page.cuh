// A page of one key head in shared memory, and what a warp computes of it (decode_kernel.cuh).
#ifndef TRITONRL_ROLLOUT_CUDA_DECODE_PAGE_CUH_
#define TRITONRL_ROLLOUT_CUDA_DECODE_PAGE_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "model/cuda/mma.cuh"
#include "model/cuda/tensor_boxes.h"
#include "rollout/cuda/paged_layout.h"

namespace tritonrl::decode {

inline constexpr int kWarps = 4;
inline constexpr int kMostHeads = 8;  // columns of a product
// A weight is at most two to this power.
inline constexpr float kSlack = 6;

// Where keys or values of a page lie in shared memory: lines of at most 128 bytes, first those of
// all tokens with the head's first elements. A line's packs of 16 bytes change places so that a
// column of packs of 8 tokens lies in different banks, as tensor maps swizzle them.
template <typename Cached, int kDim>
struct PageFormat {
  static constexpr int kTokenBytes = kDim * static_cast<int>(sizeof(Cached));
  static constexpr int kLineBytes = kTokenBytes < 128 ? kTokenBytes : 128;
  static constexpr int kLines = kTokenBytes / kLineBytes;  // of a token
  static constexpr int kLinePacks = kLineBytes / 16;
  static constexpr int kBytes = kPageTokens * kTokenBytes;

  __device__ static uint32_t Place(int token, int pack) {
    const int turn = kLinePacks == 8 ? token % 8 : token / 2 % 4;
    return (pack / kLinePacks * kPageTokens + token) * kLineBytes + (pack % kLinePacks ^ turn) * 16;
  }
  // Place(token, pack + 2 * pairs), if `first` is Place(token, pack) and pack is 0 or 1.
  __device__ static uint32_t Behind(uint32_t first, int pairs) {
    constexpr int kLinePairs = kLinePacks / 2;
    return (first ^ pairs % kLinePairs * 32) + pairs / kLinePairs * (kPageTokens * kLineBytes);
  }

  // Pages of a head in a pool of any number of pages.
  static TensorBoxes Boxes(const void* pool, int key_heads) {
    constexpr int64_t kMostSlots = (int64_t{1} << 31) - kPageTokens;  // as their numbers are int32
    constexpr int64_t kElements = kLineBytes / static_cast<int64_t>(sizeof(Cached));
    const int64_t lines = int64_t{key_heads} * kLines;
    return {pool,
            sizeof(Cached),
            {kElements, kMostSlots, lines},
            {lines * kLineBytes, kLineBytes},
            {kElements, kPageTokens, kLines}};
  }

  // A warp begins to copy a page of a key head to `to`, keys and behind them values. Positions from
  // `tokens` on become zeros.
  __device__ static void Copy(const void* keys, const void* values, int32_t page, int key_heads,
                              int head, int tokens, uint8_t* to) {
    constexpr int kPacks = kTokenBytes / 16, kTogether = 32 / kPacks;  // tokens
    const int lane = threadIdx.x % 32;
    const int64_t token_bytes = int64_t{key_heads} * kTokenBytes;
    int64_t from = (int64_t{page} * kPageTokens + lane / kPacks) * token_bytes +
                   head * kTokenBytes + lane % kPacks * 16;
#pragma unroll
    for (int first = 0; first < kPageTokens; first += kTogether) {
      const int token = first + lane / kPacks;
      const int bytes = token < tokens ? 16 : 0;
      const uint32_t place = Place(token, lane % kPacks);
      CopyAsync(to + place, static_cast<const uint8_t*>(keys) + from, bytes);
      CopyAsync(to + kBytes + place, static_cast<const uint8_t*>(values) + from, bytes);
      from += kTogether * token_bytes;
    }
  }
};

__device__ inline uint32_t Bits(__nv_bfloat162 pair) {
  return *reinterpret_cast<const uint32_t*>(&pair);
}
__device__ inline float2 PairOf(uint32_t bits) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&bits));
}
__device__ inline uint32_t Bits(__half2 pair) { return *reinterpret_cast<const uint32_t*>(&pair); }

// Two E4M3 numbers, the low two bytes, as fp16.
__device__ inline uint32_t HalvesOf(uint32_t bytes) {
  const __half2_raw pair =
      __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(bytes & 0xffff), __NV_E4M3);
  return static_cast<uint32_t>(pair.x) | static_cast<uint32_t>(pair.y) << 16;
}

// Softmax and weighted values of up to 8 query heads over the pages that a warp has seen. With
// g = lane / 4 and t = lane % 4 a thread holds columns (heads) 2t and 2t + 1.
template <typename Cached, int kDim>
class WarpSums {
 public:
  static constexpr bool kFp8 = sizeof(Cached) == 1;
  using Format = PageFormat<Cached, kDim>;

  // queries: [heads, kDim].
  __device__ WarpSums(const __nv_bfloat16* queries, int heads) {
    const int lane = threadIdx.x % 32, head = lane / 4;
    const int low = lane % 8 + lane / 8 % 2 * 8, high = lane % 8 + lane / 16 * 8;
    keys_ = Kept(Format::Place(low, lane / 16));
    values_ = Kept(kFp8 ? Format::Place(low, lane / 16) : Format::Place(high, lane / 8 % 2));
    values_ += Format::kBytes;  // behind the keys
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      // Of 8-bit keys a thread has four neighbours: the sum over a step's elements is in that
      // order.
      const __nv_bfloat16* from = queries + head * kDim + step * 16 + lane % 4 * (kFp8 ? 4 : 2);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint32_t pair = 0;
        if (head < heads) {
          const auto x = *reinterpret_cast<const __nv_bfloat162*>(from + half * (kFp8 ? 2 : 8));
          pair = kFp8 ? Bits(__float22half2_rn(__bfloat1622float2(x))) : Bits(x);
        }
        queries_[step][half] = pair;
      }
    }
  }

  // page: SharedAddress of keys and values, of which `tokens` (or all) are used; the others may be
  // no numbers. Gives a word of what was read: products wait for all of it, and the one that
  // waits for the word comes among the last.
  __device__ uint32_t Add(uint32_t page, int tokens, float scale_log2) {
    return tokens < kPageTokens ? AddTokens<false>(page, tokens, scale_log2)
                                : AddTokens<true>(page, tokens, scale_log2);
  }

  // sums: [heads, kDim], not divided; most, and `totals` floats behind it the sums of weights:
  // [heads].
  __device__ void Store(float* sums, float* most, int totals, int heads) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int column = 0; column < 2; ++column) {
      float total = totals_[column];
#pragma unroll
      for (int step = 4; step < 32; step *= 2) total += __shfl_xor_sync(~0u, total, step);
      const int head = lane % 4 * 2 + column;
      if (head >= heads) continue;
      if (lane / 4 == 0) {
        most[head] = most_[column];
        most[totals + head] = total;
      }
#pragma unroll
      for (int tile = 0; tile < kDim / 16; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          // Of 8-bit values the tile's rows are its even elements, then its odd ones.
          const int element = kFp8 ? lane / 4 * 2 + half : lane / 4 + half * 8;
          sums[head * kDim + tile * 16 + element] = sums_[tile][half * 2 + column];
        }
      }
    }
  }

 private:
  static constexpr int kSteps = kDim / 16;

  template <bool kWhole>
  __device__ uint32_t AddTokens(uint32_t page, int tokens, float scale_log2) {
    float scores[4] = {};
    Score(page + keys_, scores);
    if constexpr (!kWhole) {
      const int token = threadIdx.x % 32 / 4;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (token + i / 2 * 8 >= tokens) scores[i] = -INFINITY;
      }
    }
    Raise(fmaxf(scores[0], scores[2]) * scale_log2, fmaxf(scores[1], scores[3]) * scale_log2);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      scores[i] = PowerOfTwo(fmaf(scores[i], scale_log2, -most_[i % 2]));
      totals_[i % 2] += scores[i];
    }
    uint32_t weights[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint32_t pair = kFp8 ? Bits(__floats2half2_rn(scores[2 * i], scores[2 * i + 1]))
                                 : Bits(__floats2bfloat162_rn(scores[2 * i], scores[2 * i + 1]));
      weights[i] = Transposed(pair);
    }
    return AddValues<kWhole>(page + values_, weights, tokens);
  }

  // scores [16 tokens, 8 heads] += keys x queries.
  __device__ void Score(uint32_t keys, float (&scores)[4]) const {
    if constexpr (kFp8) {
#pragma unroll
      for (int step = 0; step < kSteps; step += 2) {
        uint32_t k[4];
        LoadMatrices(Format::Behind(keys, step / 2), k);
        MultiplyAddHalves(scores, HalvesOf(k[0]), HalvesOf(k[1]), HalvesOf(k[0] >> 16),
                          HalvesOf(k[1] >> 16), queries_[step][0], queries_[step][1]);
        MultiplyAddHalves(scores, HalvesOf(k[2]), HalvesOf(k[3]), HalvesOf(k[2] >> 16),
                          HalvesOf(k[3] >> 16), queries_[step + 1][0], queries_[step + 1][1]);
      }
    } else {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        uint32_t k[4];
        LoadMatrices(Format::Behind(keys, step), k);
        MultiplyAdd(scores, k[0], k[1], k[2], k[3], queries_[step][0], queries_[step][1]);
      }
    }
  }

  // Bits of two tokens' elements, of the thread's in the first half of the page and in the second,
  // that are used.
  __device__ static void MaskOf(int tokens, uint32_t (&masks)[2]) {
    const int token = threadIdx.x % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int left = tokens - token - 8 * half;
      masks[half] = left >= 2 ? 0xffffffff : left == 1 ? 0xffff : 0;
    }
  }

  // Raises the exponents' origin of both columns if a score of the page is far above it.
  __device__ void Raise(float top0, float top1) {
    if (!__any_sync(~0u, top0 > most_[0] + kSlack || top1 > most_[1] + kSlack)) return;
    float top[2] = {top0, top1};
#pragma unroll
    for (int column = 0; column < 2; ++column) {
#pragma unroll
      for (int step = 4; step < 32; step *= 2) {
        top[column] = fmaxf(top[column], __shfl_xor_sync(~0u, top[column], step));
      }
      top[column] = fmaxf(top[column], most_[column]);
      const float factor = PowerOfTwo(most_[column] - top[column]);
      most_[column] = top[column];
      totals_[column] *= factor;
#pragma unroll
      for (int tile = 0; tile < kDim / 16; ++tile) {
        sums_[tile][column] *= factor;
        sums_[tile][2 + column] *= factor;
      }
    }
  }

  // sums [kDim, 8 heads] += values, transposed, x weights [16 tokens, 8 heads]. A word of values.
  template <bool kWhole>
  __device__ uint32_t AddValues(uint32_t values, const uint32_t (&weights)[2], int tokens) {
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
          MultiplyAddHalves(sums_[tile + i], HalvesOf(even[0]), HalvesOf(odd[0]), HalvesOf(even[1]),
                            HalvesOf(odd[1]), weights[0], weights[1]);
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
        MultiplyAdd(sums_[tile], v[0], v[1], v[2], v[3], weights[0], weights[1]);
      }
    }
    return read;
  }

  uint32_t keys_, values_;  // where the lane begins to read, from a page's beginning
  uint32_t queries_[kSteps][2];
  float sums_[kDim / 16][4] = {};
  float most_[2] = {-INFINITY, -INFINITY};
  float totals_[2] = {};  // of the weights that the thread has had
};

}  // namespace tritonrl::decode

#endif  // TRITONRL_ROLLOUT_CUDA_DECODE_PAGE_CUH_
