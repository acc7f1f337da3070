#include "rollout/scheduler/block_pool.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "rollout/scheduler/block_pool.h"

namespace tritonrl {

BlockPool::BlockPool(int num_pages)
    : ref_counts_(num_pages), free_(num_pages), cached_(num_pages), place_(num_pages) {
  std::iota(free_.rbegin(), free_.rend(), 0);
}

int32_t BlockPool::Allocate() {
  CheckInvariant(num_free() > 0, "no page is free");
  int32_t page = 0;
  if (!free_.empty()) {
    page = free_.back();
    free_.pop_back();
  } else {
    page = evictable_.front();
    evictable_.pop_front();
    cached_[page] = false;
    evicted_.push_back(page);
  }
  ref_counts_[page] = 1;
  peak_ = std::max(peak_, num_pages() - num_free());
  return page;
}

void BlockPool::AddRef(int32_t page) {
  CheckInvariant(ref_counts_[page] > 0 || cached_[page], "the page is free");
  if (ref_counts_[page]++ > 0) return;
  evictable_.erase(place_[page]);
  peak_ = std::max(peak_, num_pages() - num_free());
}

void BlockPool::Release(int32_t page) {
  CheckInvariant(ref_counts_[page] > 0, "the page is free");
  if (--ref_counts_[page] > 0) return;
  if (cached_[page]) {
    place_[page] = evictable_.insert(evictable_.end(), page);
  } else {
    free_.push_back(page);
  }
}

void BlockPool::MarkCached(int32_t page) {
  CheckInvariant(ref_counts_[page] > 0, "the page is free");
  cached_[page] = true;
}

void BlockPool::UnmarkCached(int32_t page) {
  if (!cached_[page]) return;
  cached_[page] = false;
  if (ref_counts_[page] > 0) return;
  evictable_.erase(place_[page]);
  free_.push_back(page);
}

std::vector<int32_t> BlockPool::TakeEvicted() { return std::exchange(evicted_, {}); }

PrefixCache::PrefixCache(int page_size, BlockPool* pool)
    : page_size_(static_cast<size_t>(page_size)), pool_(pool), key_of_page_(pool->num_pages()) {}

PrefixCache::Key PrefixCache::KeyOf(uint64_t parent, std::span<const int32_t> tokens,
                                    size_t page) const {
  const auto own = tokens.subspan(page * page_size_, page_size_);
  return {parent, {own.begin(), own.end()}};
}

void PrefixCache::DropEvicted() {
  for (const int32_t page : pool_->TakeEvicted()) pages_.erase(key_of_page_[page]);
}

std::vector<int32_t> PrefixCache::Find(std::span<const int32_t> tokens) {
  DropEvicted();
  std::vector<int32_t> found;
  uint64_t parent = 0;
  for (size_t page = 0; page < tokens.size() / page_size_; ++page) {
    const auto it = pages_.find(KeyOf(parent, tokens, page));
    if (it == pages_.end()) break;
    found.push_back(it->second.page);
    parent = it->second.serial;
  }
  return found;
}

void PrefixCache::Insert(std::span<const int32_t> tokens, std::span<const int32_t> pages) {
  DropEvicted();
  uint64_t parent = 0;
  for (size_t page = 0; page < tokens.size() / page_size_; ++page) {
    Key key = KeyOf(parent, tokens, page);
    const auto [it, is_new] = pages_.try_emplace(key, Entry{pages[page], next_serial_});
    parent = it->second.serial;
    if (!is_new) continue;
    ++next_serial_;
    // Known already behind a page that is lost: nothing leads there any more.
    if (pool_->is_cached(pages[page])) pages_.erase(key_of_page_[pages[page]]);
    pool_->MarkCached(pages[page]);
    key_of_page_[pages[page]] = std::move(key);
  }
}

void PrefixCache::Clear() {
  DropEvicted();
  for (const auto& [key, entry] : pages_) pool_->UnmarkCached(entry.page);
  pages_.clear();
}

}  // namespace tritonrl
