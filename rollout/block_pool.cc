#include "rollout/block_pool.h"

#include <algorithm>
#include <numeric>

#include "rollout/check.h"

namespace tritonrl {

BlockPool::BlockPool(int num_pages) : holders_(num_pages), free_(num_pages) {
  std::iota(free_.rbegin(), free_.rend(), 0);
}

int32_t BlockPool::Allocate() {
  Check(!free_.empty(), "no page is free");
  const int32_t page = free_.back();
  free_.pop_back();
  holders_[page] = 1;
  peak_ = std::max(peak_, num_pages() - num_free());
  return page;
}

void BlockPool::Hold(int32_t page) {
  Check(holders_[page] > 0, "the page is free");
  ++holders_[page];
}

void BlockPool::Release(int32_t page) {
  Check(holders_[page] > 0, "the page is free");
  if (--holders_[page] == 0) free_.push_back(page);
}

}  // namespace tritonrl
