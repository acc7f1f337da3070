#ifndef TRITONRL_ROLLOUT_BLOCK_POOL_H_
#define TRITONRL_ROLLOUT_BLOCK_POOL_H_

#include <cstdint>
#include <vector>

namespace tritonrl {

struct PageCopy {
  int32_t from = 0;
  int32_t to = 0;
};

// Which pages of a cache are free, and how many holders each other one has. Ids only: what is in a
// page is the holders' business. A mistake in the counts ends the program.
class BlockPool {
 public:
  explicit BlockPool(int num_pages);

  // A page with one holder. There must be a free one; the page freed last comes first, as it is
  // most likely still in a processor's cache.
  int32_t Allocate();
  // One holder more, or less; the last one to leave frees the page.
  void Hold(int32_t page);
  void Release(int32_t page);

  int holders(int32_t page) const { return holders_[page]; }
  int num_pages() const { return static_cast<int>(holders_.size()); }
  int num_free() const { return static_cast<int>(free_.size()); }
  // Most pages in use at one time so far.
  int peak() const { return peak_; }

 private:
  std::vector<int32_t> holders_;
  std::vector<int32_t> free_;  // taken from the back
  int peak_ = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_BLOCK_POOL_H_
