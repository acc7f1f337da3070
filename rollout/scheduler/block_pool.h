#ifndef TRITONRL_ROLLOUT_SCHEDULER_BLOCK_POOL_H_
#define TRITONRL_ROLLOUT_SCHEDULER_BLOCK_POOL_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace tritonrl {

// Aborts with a message unless `condition` holds. For internal invariants only.
inline void CheckInvariant(bool condition, const char* mistake) {
  if (condition) [[likely]] {
    return;
  }
  std::fprintf(stderr, "internal error in the generation engine: %s\n", mistake);
  std::abort();
}

struct PageCopy {
  int32_t from = 0;
  int32_t to = 0;
};

// Allocates the pages (blocks) of a paged KV cache with reference counts. Page ids only. A wrong
// count aborts the program.
//
// A page can be marked as cached: without references it is free, but it is evicted only after all
// uncached free pages, least recently freed first, and can be referenced again until then.
class BlockPool {
 public:
  explicit BlockPool(int num_pages);

  // A page with one reference, not cached. There must be a free one; of those not cached the one
  // freed last comes first, as it is most likely still in a processor's cache.
  int32_t Allocate();
  // Adds or drops a reference; the last drop frees the page.
  void AddRef(int32_t page);
  void Release(int32_t page);

  // Marks a referenced page as cached.
  void MarkCached(int32_t page);
  // Removes the mark, also of free pages.
  void UnmarkCached(int32_t page);
  bool is_cached(int32_t page) const { return cached_[page]; }
  // The cached pages that Allocate has evicted since the last call.
  std::vector<int32_t> TakeEvicted();

  int ref_count(int32_t page) const { return ref_counts_[page]; }
  int num_pages() const { return static_cast<int>(ref_counts_.size()); }
  int num_free() const { return static_cast<int>(free_.size() + evictable_.size()); }
  // Most pages in use at one time so far.
  int peak() const { return peak_; }

 private:
  std::vector<int32_t> ref_counts_;
  std::vector<int32_t> free_;  // not marked, taken from the back
  std::vector<bool> cached_;
  std::list<int32_t> evictable_;                     // free and marked, taken from the front
  std::vector<std::list<int32_t>::iterator> place_;  // of each page in evictable_, if it is there
  std::vector<int32_t> evicted_;
  int peak_ = 0;
};

// Prefix cache: maps token prefixes to pages that already hold their keys and values. Full pages
// only. The key of a page is its parent page and its own tokens, compared exactly, so there are no
// hash collisions. Cached pages without references stay in the pool until evicted (BlockPool).
class PrefixCache {
 public:
  PrefixCache(int page_size, BlockPool* pool);

  // The pages of the longest known beginning of `tokens`, in order. They may be free: hold them
  // before the pool is asked for others.
  std::vector<int32_t> Find(std::span<const int32_t> tokens);

  // `pages` hold `tokens` from the sequence's beginning on; what fills only a part of a page is
  // left out. Pages must be held. What is known already stays as it is.
  void Insert(std::span<const int32_t> tokens, std::span<const int32_t> pages);

  // Invalidates all entries.
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
  void DropEvicted();
  Key KeyOf(uint64_t parent, std::span<const int32_t> tokens, size_t page) const;

  const size_t page_size_;
  BlockPool* const pool_;
  absl::flat_hash_map<Key, Entry> pages_;
  std::vector<Key> key_of_page_;  // of marked ones
  uint64_t next_serial_ = 1;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SCHEDULER_BLOCK_POOL_H_
