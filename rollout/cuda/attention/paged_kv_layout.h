// How a paged KV cache lies in a GPU's memory. Each layer has two pools, one of keys (after norm
// and rotation) and one of values, both [pages, kPageTokens, K, D]: K key heads of D elements for
// each position, so that a position is one run of K D elements and page slot s is row s of a matrix
// [pages * kPageTokens, K D].
#ifndef TRITONRL_ROLLOUT_CUDA_ATTENTION_PAGED_KV_LAYOUT_H_
#define TRITONRL_ROLLOUT_CUDA_ATTENTION_PAGED_KV_LAYOUT_H_

#include <cstdint>

namespace tritonrl {

// Rows of a tensor core's tile (decode_softmax.cuh), as a page of model/paged_cache.h is a vector
// of the CPU's: the two are equal today and need not be.
inline constexpr int kPageTokens = 16;

// In place of a page slot: nothing is written.
inline constexpr int32_t kNoPageSlot = -1;

// Where position `position` of a sequence lies, if `page` is the one that holds it.
inline int32_t PageSlot(int32_t page, int64_t position) {
  return page * kPageTokens + static_cast<int32_t>(position % kPageTokens);
}

// Pages that hold `tokens` positions.
inline int64_t PagesFor(int64_t tokens) { return (tokens + kPageTokens - 1) / kPageTokens; }

// Of a pool's elements. E4M3 numbers stand for themselves, without a factor: keys are normed to
// about 1 an element, values are of that order, and what is smaller than 2^-10 or larger than 448
// (which saturates, infinity too; NaN stays NaN) is rare enough.
enum class CacheType : uint8_t { kBFloat16, kE4M3 };

// Heads of an attention layer.
struct CacheHeads {
  int query_heads = 0;  // H, a multiple of key_heads, at most 16 times as many
  int key_heads = 0;    // K
  int head_dim = 0;     // D: 64 or 128
  CacheType type = CacheType::kBFloat16;

  int64_t PageElements() const { return int64_t{kPageTokens} * key_heads * head_dim; }
  // Of one pool of one layer.
  int64_t PageBytes() const { return PageElements() * (type == CacheType::kE4M3 ? 1 : 2); }
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_ATTENTION_PAGED_KV_LAYOUT_H_
