// Layout of a paged KV cache in GPU memory. Each layer has two pools, keys (after norm and RoPE)
// and values, both [pages, kPageTokens, K, D]: K key heads of D elements for each position. Page
// slot s is row s of the matrix [pages * kPageTokens, K D].

#ifndef TRITONRL_ROLLOUT_CUDA_ATTENTION_PAGED_KV_LAYOUT_H_
#define TRITONRL_ROLLOUT_CUDA_ATTENTION_PAGED_KV_LAYOUT_H_

#include <cstdint>

namespace tritonrl {

// Positions of a page: the row count of a tensor core tile (decode_softmax.cuh). Independent of
// PagedKvCache::kPageSize.
inline constexpr int kPageTokens = 16;

// In place of a page slot: the key and the value are not written.
inline constexpr int32_t kNoPageSlot = -1;

// The page slot of position `position` of a sequence in its page `page`.
inline int32_t PageSlot(int32_t page, int64_t position) {
  return page * kPageTokens + static_cast<int32_t>(position % kPageTokens);
}

// Number of pages for `tokens` positions.
inline int64_t PagesFor(int64_t tokens) { return (tokens + kPageTokens - 1) / kPageTokens; }

// Element type of a pool. E4M3 is stored without a scale: elements of normed keys and of values are
// about 1, so few are below 2^-10 or above 448. Elements above 448, infinity included, saturate;
// NaN stays NaN.
enum class CacheType : uint8_t { kBFloat16, kE4M3 };

// Heads of an attention layer.
struct CacheHeads {
  int query_heads = 0;  // H, a multiple of key_heads, at most 16 times as many
  int key_heads = 0;    // K
  int head_dim = 0;     // D: 64 or 128
  CacheType type = CacheType::kBFloat16;

  int64_t PageElements() const { return int64_t{kPageTokens} * key_heads * head_dim; }
  // Bytes of a page in one pool of one layer.
  int64_t PageBytes() const { return PageElements() * (type == CacheType::kE4M3 ? 1 : 2); }
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_ATTENTION_PAGED_KV_LAYOUT_H_
