#ifndef TRITONRL_ROLLOUT_BLOCK_POOL_H_
#define TRITONRL_ROLLOUT_BLOCK_POOL_H_

#include <cstdint>
#include <list>
#include <vector>

namespace tritonrl {

struct PageCopy {
  int32_t from = 0;
  int32_t to = 0;
};

// Which pages of a cache are free, and how many holders each other one has. Ids only: what is in a
// page is the holders' business. A mistake in the counts ends the program.
//
// A page can be marked as worth keeping: once nobody holds it, it is free like any other, but is
// given out after all that are not marked, the one freed first before the others, and until then
// can be held again.
class BlockPool {
 public:
  explicit BlockPool(int num_pages);

  // A page with one holder, not marked. There must be a free one; of those not marked the one freed
  // last comes first, as it is most likely still in a processor's cache.
  int32_t Allocate();
  // One holder more, or less; the last one to leave frees the page.
  void Hold(int32_t page);
  void Release(int32_t page);

  // Marks a page that is held.
  void Mark(int32_t page);
  // Takes marks away, also of pages that are free.
  void Unmark(int32_t page);
  bool marked(int32_t page) const { return marked_[page]; }
  // The marked pages that Allocate has given out since the last call.
  std::vector<int32_t> TakeLost();

  int holders(int32_t page) const { return holders_[page]; }
  int num_pages() const { return static_cast<int>(holders_.size()); }
  int num_free() const { return static_cast<int>(free_.size() + kept_.size()); }
  // Most pages in use at one time so far.
  int peak() const { return peak_; }

 private:
  std::vector<int32_t> holders_;
  std::vector<int32_t> free_;  // not marked, taken from the back
  std::vector<bool> marked_;
  std::list<int32_t> kept_;                          // free and marked, taken from the front
  std::vector<std::list<int32_t>::iterator> place_;  // of each page in kept_, if it is there
  std::vector<int32_t> lost_;
  int peak_ = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_BLOCK_POOL_H_
