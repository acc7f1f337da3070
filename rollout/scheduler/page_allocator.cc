#include "rollout/scheduler/page_allocator.h"

#include <algorithm>
#include <numeric>
#include <utility>

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
    // The page has an entry whose parent was evicted; no lookup reaches that entry.
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

PageAllocator::PageAllocator(int num_pages, int page_size, bool enable_prefix_caching,
                             bool count_exclusive)
    : page_size_(page_size), count_exclusive_(count_exclusive), pool_(num_pages) {
  if (enable_prefix_caching) prefix_cache_.emplace(page_size, &pool_);
}

bool PageAllocator::WritesToSharedPage(const PageTable& table) const {
  return table.computed % page_size_ != 0 &&
         pool_.ref_count(table.pages[table.computed / page_size_]) > 1;
}

int64_t PageAllocator::NumMissingPages(const PageTable& table, int64_t count) const {
  return NumPages(table.computed + count) - std::ssize(table.pages) +
         (WritesToSharedPage(table) ? 1 : 0);
}

int64_t PageAllocator::Allocate(PageTable* table, int64_t count, std::vector<PageCopy>* copies) {
  if (WritesToSharedPage(*table)) {
    if (pool_.num_free() == 0) return 0;
    int32_t& page = table->pages[table->computed / page_size_];
    const int32_t from = page;
    page = pool_.Allocate();
    copies->push_back({from, page});
    pool_.Release(from);
  }
  return Grow(table, count);
}

int64_t PageAllocator::Grow(PageTable* table, int64_t count) {
  const int64_t positions = (std::ssize(table->pages) + pool_.num_free()) * page_size_;
  count = std::min(count, positions - table->computed);
  while (std::ssize(table->pages) < NumPages(table->computed + count)) {
    table->pages.push_back(pool_.Allocate());
  }
  return count;
}

void PageAllocator::Shrink(PageTable* table) {
  while (std::ssize(table->pages) > NumPages(table->computed)) {
    pool_.Release(table->pages.back());
    table->pages.pop_back();
  }
}

void PageAllocator::ReleaseAll(PageTable* table) {
  // Last page first, so that eviction takes the end of a cached prefix before its beginning.
  for (auto page = table->pages.rbegin(); page != table->pages.rend(); ++page) pool_.Release(*page);
  table->pages.clear();
  table->computed = 0;
}

void PageAllocator::SharePrompt(const SharedPrompt& prompt, PageTable* table) {
  for (const int32_t page : prompt.table.pages) pool_.AddRef(page);
  table->pages = prompt.table.pages;
  table->computed = prompt.length;
  table->reached = std::max(table->reached, prompt.length);
}

void PageAllocator::TrackPrompt(int64_t group, SharedPrompt* prompt) {
  if (!prompt->table.pages.empty()) prompts_[group] = prompt;
}

void PageAllocator::ReleasePrompt(int64_t group, SharedPrompt* prompt) {
  ReleaseAll(&prompt->table);
  prompt->ready = false;
  prompts_.erase(group);
}

void PageAllocator::ReleaseAllPrompts() {
  while (!prompts_.empty()) ReleasePrompt(prompts_.begin()->first, prompts_.begin()->second);
}

bool PageAllocator::HasPartialPage(const SharedPrompt& prompt) const {
  return prompt.ready && prompt.length % page_size_ != 0;
}

void PageAllocator::ReleasePartialPage(int64_t group, SharedPrompt* prompt) {
  if (!HasPartialPage(*prompt)) return;
  PageTable& table = prompt->table;
  pool_.Release(table.pages.back());
  table.pages.pop_back();
  table.computed = prompt->length / page_size_ * page_size_;
  prompt->ready = false;
  if (table.pages.empty()) prompts_.erase(group);
}

int64_t PageAllocator::IdlePages(const SharedPrompt& prompt) const {
  if (prompt.num_running > 0) return 0;
  const std::vector<int32_t>& pages = prompt.table.pages;
  if (!count_exclusive_) return std::ssize(pages);
  return std::count_if(pages.begin(), pages.end(),
                       [this](int32_t page) { return pool_.ref_count(page) == 1; });
}

int64_t PageAllocator::TotalIdlePages() const {
  int64_t pages = 0;
  for (const auto& [group, prompt] : prompts_) pages += IdlePages(*prompt);
  return pages;
}

bool PageAllocator::EvictIdlePrompt(int64_t except) {
  for (auto it = prompts_.rbegin(); it != prompts_.rend(); ++it) {
    const auto [group, prompt] = *it;
    if (prompt->num_running > 0 || group == except) continue;
    ReleasePrompt(group, prompt);
    return true;
  }
  return false;
}

bool PageAllocator::EvictPartialPage(int64_t requester, const std::vector<PageCopy>& copies) {
  for (auto it = prompts_.rbegin(); it != prompts_.rend(); ++it) {
    const auto [group, prompt] = *it;
    if (!HasPartialPage(*prompt)) continue;
    const int32_t page = prompt->table.pages.back();
    // The current step must not copy to a page that it copies from.
    const bool copied = std::any_of(copies.begin(), copies.end(),
                                    [page](const PageCopy& copy) { return copy.from == page; });
    if (group != requester && (pool_.ref_count(page) > 1 || copied)) continue;
    ReleasePartialPage(group, prompt);
    return true;
  }
  return false;
}

int64_t PageAllocator::MatchPrefix(int64_t group, int64_t alignment, SharedPrompt* prompt) {
  if (prompt->tokens.empty()) return 0;
  PageTable& table = prompt->table;
  table.pages = prefix_cache_->Find(prompt->tokens.first(prompt->length - 1));
  const int64_t found = std::ssize(table.pages) * page_size_;
  table.pages.resize((found - found % alignment) / page_size_);
  for (const int32_t page : table.pages) pool_.AddRef(page);
  table.computed = std::ssize(table.pages) * page_size_;
  table.reached = std::max(table.reached, table.computed);
  TrackPrompt(group, prompt);
  return table.computed;
}

void PageAllocator::CachePrompt(const SharedPrompt& prompt) {
  const int64_t whole = prompt.length - prompt.length % page_size_;
  if (prompt.tokens.empty() || prompt.table.computed < whole) return;
  prefix_cache_->Insert(prompt.tokens.first(whole), prompt.table.pages);
}

void PageAllocator::CacheSample(const SharedPrompt& prompt, const PageTable& table,
                                std::span<const int32_t> generated) {
  if (prompt.tokens.empty() || table.pages.empty() || generated.empty()) return;
  std::vector<int32_t> tokens(prompt.tokens.begin(), prompt.tokens.end());
  // Without the last token: if a draft token was rejected there, the pages hold the draft token.
  tokens.insert(tokens.end(), generated.begin(), generated.end() - 1);
  const int64_t known = std::min<int64_t>(std::ssize(tokens), table.computed);
  prefix_cache_->Insert(std::span(tokens).first(known), table.pages);
}

void PageAllocator::ClearPrefixCache() {
  if (prefix_cache_.has_value()) prefix_cache_->Clear();
}

}  // namespace tritonrl
