// Pages of the paged KV cache: reference counts, prefix caching, and the page tables of prompts
// and samples. Page ids only; runners hold the memory.

#ifndef TRITONRL_ROLLOUT_SCHEDULER_PAGE_ALLOCATOR_H_
#define TRITONRL_ROLLOUT_SCHEDULER_PAGE_ALLOCATOR_H_

#include <cstdint>
#include <cstdlib>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace tritonrl {

// Aborts with a message unless `condition` holds. For internal invariants only.
inline void CheckInvariant(bool condition, const char* mistake) {
  if (condition) [[likely]] {
    return;
  }
  Log(LogLevel::kError, absl::StrCat("internal error in the generation engine: ", mistake));
  std::abort();
}

struct PageCopy {
  int32_t from = 0;
  int32_t to = 0;
};

// Allocates pages with reference counts. A wrong count aborts the program.
//
// A page can be marked as cached. A cached page without references is free, but it can be
// referenced again until it is evicted. Allocate takes free pages that are not cached first, then
// evicts cached pages, least recently freed first.
class BlockPool {
 public:
  explicit BlockPool(int num_pages);

  // Returns a page with one reference, not cached. num_free() > 0 must hold. Of the free pages that
  // are not cached it takes the one freed last: a processor's cache may still hold it.
  int32_t Allocate();
  // Adds or drops a reference; the last drop frees the page.
  void AddRef(int32_t page);
  void Release(int32_t page);

  // Marks a referenced page as cached.
  void MarkCached(int32_t page);
  // Removes the mark, also from a free page.
  void UnmarkCached(int32_t page);
  bool is_cached(int32_t page) const { return cached_[page]; }
  // The cached pages that Allocate has evicted since the last call.
  std::vector<int32_t> TakeEvicted();

  int ref_count(int32_t page) const { return ref_counts_[page]; }
  int num_pages() const { return static_cast<int>(ref_counts_.size()); }
  int num_free() const { return static_cast<int>(free_.size() + evictable_.size()); }
  // The largest number of referenced pages so far.
  int peak() const { return peak_; }

 private:
  std::vector<int32_t> ref_counts_;
  std::vector<int32_t> free_;  // not cached, taken from the back
  std::vector<bool> cached_;
  std::list<int32_t> evictable_;                     // free and cached, taken from the front
  std::vector<std::list<int32_t>::iterator> place_;  // each page's position in evictable_
  std::vector<int32_t> evicted_;
  int peak_ = 0;
};

// Prefix cache: maps token prefixes to pages that already hold their keys and values. Only full
// pages are cached. A page's key is its parent page and its own tokens, compared exactly, so there
// are no hash collisions.
class PrefixCache {
 public:
  PrefixCache(int page_size, BlockPool* pool);

  // The pages of the longest known prefix of `tokens`, in order. They may be free: the caller must
  // add its references before it allocates other pages.
  std::vector<int32_t> Find(std::span<const int32_t> tokens);

  // Adds `pages`, which are referenced and hold `tokens` from position 0 on, except a partly filled
  // last page. Prefixes that are cached already keep their pages.
  void Insert(std::span<const int32_t> tokens, std::span<const int32_t> pages);

  // Invalidates all entries.
  void Clear();

  int64_t size() const { return static_cast<int64_t>(pages_.size()); }

 private:
  struct Key {
    uint64_t parent = 0;  // serial number of the preceding page; 0: none
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

  void DropEvicted();
  Key KeyOf(uint64_t parent, std::span<const int32_t> tokens, size_t page) const;

  const size_t page_size_;
  BlockPool* const pool_;
  absl::flat_hash_map<Key, Entry> pages_;
  std::vector<Key> key_of_page_;  // valid for cached pages
  uint64_t next_serial_ = 1;
};

// The pages of one sequence, by position.
struct PageTable {
  std::vector<int32_t> pages;
  int64_t computed = 0;  // positions whose keys and values exist once the scheduled steps have run
  int64_t reached = 0;   // maximum of `computed` so far
};

// A group's prompt. Its samples share its pages.
struct SharedPrompt {
  int64_t length = 0;
  std::span<const int32_t> tokens;  // empty: not known
  PageTable table;
  bool ready = false;   // an earlier step computes the last position
  int num_running = 0;  // running samples of the group
};

// Allocates pages for page tables, and evicts prompts that are not in use. Prompts are identified
// by their group's number; a prompt that holds pages must not move in memory.
class PageAllocator {
 public:
  // count_exclusive: IdlePages counts only pages that no other sequence shares.
  PageAllocator(int num_pages, int page_size, bool enable_prefix_caching, bool count_exclusive);

  const BlockPool& pool() const { return pool_; }
  int64_t num_free() const { return pool_.num_free(); }
  // Pages of a sequence of `positions` positions.
  int64_t NumPages(int64_t positions) const { return (positions + page_size_ - 1) / page_size_; }

  // Number of free pages that Allocate(table, count) needs for all `count` positions.
  int64_t NumMissingPages(const PageTable& table, int64_t count) const;
  // Gives `table` pages for positions [computed, computed + count), or for as many of them as the
  // free pages allow; returns that number. If another sequence shares the page of position
  // `computed`, the table gets a new page for it, and the copy is added to `copies`
  // (copy-on-write).
  int64_t Allocate(PageTable* table, int64_t count, std::vector<PageCopy>* copies);
  // The same for a table whose page of position `computed` is not shared.
  int64_t Grow(PageTable* table, int64_t count);
  // Releases the pages after position `computed`.
  void Shrink(PageTable* table);
  void ReleaseAll(PageTable* table);

  // Gives an empty `table` the pages of the whole prompt.
  void SharePrompt(const SharedPrompt& prompt, PageTable* table);
  // Must be called after prompt->table has changed: makes a prompt that holds pages evictable.
  void TrackPrompt(int64_t group, SharedPrompt* prompt);
  void ReleasePrompt(int64_t group, SharedPrompt* prompt);
  void ReleaseAllPrompts();
  // Releases the partly filled last page of a prompt that is ready.
  void ReleasePartialPage(int64_t group, SharedPrompt* prompt);

  // Number of pages that releasing the prompt frees, if no sample of its group runs; else 0.
  int64_t IdlePages(const SharedPrompt& prompt) const;
  int64_t TotalIdlePages() const;
  // Releases the prompt of the youngest group without running samples, other than `except`. False
  // if there is none.
  bool EvictIdlePrompt(int64_t except);
  // Releases the partly filled page of the youngest prompt whose release frees a page, or lets
  // group `requester` write to the page. False if there is none. `copies`: page copies of the
  // current step.
  bool EvictPartialPage(int64_t requester, const std::vector<PageCopy>& copies);

  // Prefix caching; without it these do nothing. Gives an empty prompt the cached pages of its
  // prefix, up to a multiple of `alignment` positions. Its last token is always computed, because
  // its logits are needed. Returns the number of positions.
  int64_t MatchPrefix(int64_t group, int64_t alignment, SharedPrompt* prompt);
  // Adds a computed prompt's full pages to the prefix cache; its partly filled page may be
  // released.
  void CachePrompt(const SharedPrompt& prompt);
  // Adds the full pages of a sample of the prompt to the prefix cache.
  void CacheSample(const SharedPrompt& prompt, const PageTable& table,
                   std::span<const int32_t> generated);
  void ClearPrefixCache();

 private:
  // Whether position `computed` is in a page that another sequence holds too.
  bool WritesToSharedPage(const PageTable& table) const;
  bool HasPartialPage(const SharedPrompt& prompt) const;

  const int64_t page_size_;
  const bool count_exclusive_;
  BlockPool pool_;
  std::optional<PrefixCache> prefix_cache_;
  std::map<int64_t, SharedPrompt*> prompts_;  // prompts that hold pages, by group
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SCHEDULER_PAGE_ALLOCATOR_H_
