// A page of one key head in shared memory.
#ifndef TRITONRL_ROLLOUT_CUDA_DECODE_PAGE_CUH_
#define TRITONRL_ROLLOUT_CUDA_DECODE_PAGE_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "model/cuda/mma.cuh"
#include "model/cuda/tensor_boxes.h"
#include "rollout/cuda/paged_layout.h"

namespace tritonrl::decode {

inline constexpr int kWarps = 4;

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

}  // namespace tritonrl::decode

#endif  // TRITONRL_ROLLOUT_CUDA_DECODE_PAGE_CUH_
