#ifndef TRITONRL_ROLLOUT_PREFIX_CACHE_H_
#define TRITONRL_ROLLOUT_PREFIX_CACHE_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "rollout/block_pool.h"

namespace tritonrl {

// Finds pages that hold the keys and values of a sequence's beginning, computed for an earlier
// sequence that began alike. Whole pages only. A page is known by the page before it and its own
// tokens, which are compared one by one: no two beginnings are ever taken for each other.
//
// Pages stay in the pool as marked ones (see BlockPool): memory that nobody needs.
class PrefixCache {
 public:
  PrefixCache(int page_size, BlockPool* pool);

  // The pages of the longest known beginning of `tokens`, in order. They may be free: hold them
  // before the pool is asked for others.
  std::vector<int32_t> Find(std::span<const int32_t> tokens);

  // `pages` hold `tokens` from the sequence's beginning on; what fills only a part of a page is
  // left out. Pages must be held. What is known already stays as it is.
  void Insert(std::span<const int32_t> tokens, std::span<const int32_t> pages);

  // Everything is forgotten.
  void Clear();

  int64_t size() const { return static_cast<int64_t>(pages_.size()); }

 private:
  struct Key {
    uint64_t parent = 0;  // serial number of the page before; 0: none
    std::vector<int32_t> tokens;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.parent, key.tokens);
    }
  };
  struct Entry {
    int32_t page = 0;
    uint64_t serial = 0;
  };

  // Drops what the pool has given away.
  void DropLost();
  Key KeyOf(uint64_t parent, std::span<const int32_t> tokens, size_t page) const;

  const size_t page_size_;
  BlockPool* const pool_;
  absl::flat_hash_map<Key, Entry> pages_;
  std::vector<Key> key_of_page_;  // of marked ones
  uint64_t next_serial_ = 1;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_PREFIX_CACHE_H_
