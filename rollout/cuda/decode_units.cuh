// What a launch of the kernel of decode_kernel.cuh is told, and which pages each warp reads in
// which order.
#ifndef TRITONRL_ROLLOUT_CUDA_DECODE_UNITS_CUH_
#define TRITONRL_ROLLOUT_CUDA_DECODE_UNITS_CUH_

#include <cuda_bf16.h>

#include <cstdint>

#include "model/cuda/tensor_copy.cuh"
#include "rollout/cuda/decode_page.cuh"
#include "rollout/cuda/decode_plan.h"
#include "rollout/cuda/paged_layout.h"

namespace tritonrl::decode {

struct Call {
  // Of keys and values, for a page of a head: [lines of 128 bytes or less of a position, page
  // slots, elements of a line]. Hopper.
  CUtensorMap key_boxes, value_boxes;
  const __nv_bfloat16* queries = nullptr;  // [R, H, D]
  const void* keys = nullptr;              // pools (paged_layout.h)
  const void* values = nullptr;
  const int32_t* page_table = nullptr;
  const DecodeTile* tiles = nullptr;
  const DecodeRow* rows = nullptr;
  const int32_t* used_tiles = nullptr;
  __nv_bfloat16* out = nullptr;  // [R, H, D]
  // What the parts of divided rows give by themselves: [slots, H, D], the base-2 logarithms of
  // their sums of weights [slots, H], and how many of them are there [R, K, groups], 0 before and
  // after.
  __nv_bfloat16* parts = nullptr;
  float* lses = nullptr;
  int32_t* arrived = nullptr;
  int query_heads = 0, key_heads = 0;
  int groups = 0;        // parts of a key head's query heads, of
  int group = 0;         // query heads each (the last may have fewer), at most kOctet
  float scale_log2 = 0;  // of scores, times log2(e)
  uint32_t zero = 0;     // unknown to the compiler: `x & zero` waits for x to be read
};

// A unit: a tile, a key head, and some of its query heads. Its columns are these heads of the
// tile's first row, then of the next.
struct Unit {
  int number, key_head, first_head, heads;
  DecodeTile tile;

  __device__ int Pages() const { return (tile.tokens + kPageTokens - 1) / kPageTokens; }
  __device__ int Columns() const { return tile.rows * heads; }
};

// All units of a launch.
class Units {
 public:
  __device__ explicit Units(const Call& call)
      : call_(call), count_(*call.used_tiles * call.key_heads * call.groups) {}

  __device__ bool Has(const Unit& unit) const { return unit.number < count_; }
  // Without pages if there is none of this number.
  __device__ Unit Load(int number) const {
    Unit unit = {.number = number};
    if (number >= count_) return unit;
    const int of_tile = call_.key_heads * call_.groups;
    const int each = call_.query_heads / call_.key_heads;
    const int before = number % call_.groups * call_.group;
    unit.key_head = number % of_tile / call_.groups;
    unit.first_head = unit.key_head * each + before;
    unit.heads = each - before < call_.group ? each - before : call_.group;
    unit.tile = call_.tiles[number / of_tile];
    return unit;
  }
  // The next one of this block.
  __device__ Unit After(const Unit& unit) const { return Load(unit.number + gridDim.x); }

 private:
  const Call& call_;
  const int count_;
};

// What a warp reads, in order: every kWarps-th page of each of its block's units. The numbers of 32
// pages are read at a time, and so early that nobody waits for them.
class PageStream {
 public:
  __device__ PageStream(const Units& units, const int32_t* page_table, int warp)
      : units_(units), table_(page_table), warp_(warp), now_(RunOf(units.Load(blockIdx.x), 0)) {
    after_ = units.After(now_.unit);
    next_ = Behind(now_);
    if (now_.count == 0) TakeNextRun();
  }

  struct Page {
    int32_t id;
    int head;      // key head
    int tokens;    // of the unit from the page's first on
    bool settled;  // nothing of it is written by kernels that may still run
  };
  __device__ bool AtEnd() const { return !units_.Has(now_.unit); }
  // In all lanes of the warp.
  __device__ Page Take() {
    const int number = warp_ + kWarps * (now_.base + index_);
    const Page page = {__shfl_sync(~0u, now_.ids, index_), now_.unit.key_head,
                       now_.unit.tile.tokens - number * kPageTokens,
                       number < now_.unit.tile.settled_pages};
    if (++index_ == now_.count) TakeNextRun();
    return page;
  }

 private:
  // 32 of a unit's pages that are this warp's, from the base-th on.
  struct Run {
    Unit unit;
    int base;
    int count;    // at most 32
    int32_t ids;  // of page base + lane
  };
  __device__ int PagesOf(const Unit& unit) const {
    const int pages = unit.Pages() - warp_;
    return pages > 0 ? (pages + kWarps - 1) / kWarps : 0;
  }
  __device__ Run RunOf(const Unit& unit, int base) const {
    const int left = PagesOf(unit) - base, lane = threadIdx.x % 32;
    Run run = {unit, base, left < 32 ? left : 32, 0};
    if (lane < left) run.ids = table_[unit.tile.first_page + warp_ + kWarps * (base + lane)];
    return run;
  }
  __device__ Run Behind(const Run& run) {
    if (run.base + 32 < PagesOf(run.unit)) return RunOf(run.unit, run.base + 32);
    const Unit unit = after_;
    after_ = units_.After(after_);
    return RunOf(unit, 0);
  }
  // The next one that has pages.
  __device__ void TakeNextRun() {
    do {
      now_ = next_;
      next_ = Behind(next_);
    } while (!AtEnd() && now_.count == 0);
    index_ = 0;
  }

  const Units& units_;
  const int32_t* const table_;
  const int warp_;
  int index_ = 0;  // in the run
  Run now_, next_;
  Unit after_;  // the one behind next_'s
};

}  // namespace tritonrl::decode

#endif  // TRITONRL_ROLLOUT_CUDA_DECODE_UNITS_CUH_
