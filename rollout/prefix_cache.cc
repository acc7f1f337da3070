#include "rollout/prefix_cache.h"

namespace tritonrl {

PrefixCache::PrefixCache(int page_size, BlockPool* pool)
    : page_size_(static_cast<size_t>(page_size)), pool_(pool), key_of_page_(pool->num_pages()) {}

PrefixCache::Key PrefixCache::KeyOf(uint64_t parent, std::span<const int32_t> tokens,
                                    size_t page) const {
  const auto own = tokens.subspan(page * page_size_, page_size_);
  return {parent, {own.begin(), own.end()}};
}

void PrefixCache::DropLost() {
  for (const int32_t page : pool_->TakeLost()) pages_.erase(key_of_page_[page]);
}

std::vector<int32_t> PrefixCache::Find(std::span<const int32_t> tokens) {
  DropLost();
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
  DropLost();
  uint64_t parent = 0;
  for (size_t page = 0; page < tokens.size() / page_size_; ++page) {
    Key key = KeyOf(parent, tokens, page);
    const auto [it, is_new] = pages_.try_emplace(key, Entry{pages[page], next_serial_});
    parent = it->second.serial;
    if (!is_new) continue;
    ++next_serial_;
    // Known already behind a page that is lost: nothing leads there any more.
    if (pool_->marked(pages[page])) pages_.erase(key_of_page_[pages[page]]);
    pool_->Mark(pages[page]);
    key_of_page_[pages[page]] = std::move(key);
  }
}

void PrefixCache::Clear() {
  DropLost();
  for (const auto& [key, entry] : pages_) pool_->Unmark(entry.page);
  pages_.clear();
}

}  // namespace tritonrl
