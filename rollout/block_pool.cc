#include "rollout/block_pool.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "rollout/check.h"

namespace tritonrl {

BlockPool::BlockPool(int num_pages)
    : holders_(num_pages), free_(num_pages), marked_(num_pages), place_(num_pages) {
  std::iota(free_.rbegin(), free_.rend(), 0);
}

int32_t BlockPool::Allocate() {
  Check(num_free() > 0, "no page is free");
  int32_t page = 0;
  if (!free_.empty()) {
    page = free_.back();
    free_.pop_back();
  } else {
    page = kept_.front();
    kept_.pop_front();
    marked_[page] = false;
    lost_.push_back(page);
  }
  holders_[page] = 1;
  peak_ = std::max(peak_, num_pages() - num_free());
  return page;
}

void BlockPool::Hold(int32_t page) {
  Check(holders_[page] > 0 || marked_[page], "the page is free");
  if (holders_[page]++ > 0) return;
  kept_.erase(place_[page]);
  peak_ = std::max(peak_, num_pages() - num_free());
}

void BlockPool::Release(int32_t page) {
  Check(holders_[page] > 0, "the page is free");
  if (--holders_[page] > 0) return;
  if (marked_[page]) {
    place_[page] = kept_.insert(kept_.end(), page);
  } else {
    free_.push_back(page);
  }
}

void BlockPool::Mark(int32_t page) {
  Check(holders_[page] > 0, "the page is free");
  marked_[page] = true;
}

void BlockPool::Unmark(int32_t page) {
  if (!marked_[page]) return;
  marked_[page] = false;
  if (holders_[page] > 0) return;
  kept_.erase(place_[page]);
  free_.push_back(page);
}

std::vector<int32_t> BlockPool::TakeLost() { return std::exchange(lost_, {}); }

}  // namespace tritonrl
