#ifndef TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_PAGE_PIPELINE_CUH_
#define TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_PAGE_PIPELINE_CUH_

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "model/cuda/common/ptx.cuh"
#include "model/cuda/common/tensor_map_desc.h"
#include "rollout/cuda/attention/decode_plan.h"
#include "rollout/cuda/attention/paged_kv_layout.h"

// A page of one key head in shared memory.
//
// What a launch of the kernel of decode_kernel.cuh is told, and which pages each warp reads in
// which order.
//
// What a warp of decode_kernel.cuh has in shared memory of the pages that it reads.

namespace tritonrl::decode {

inline constexpr int kWarps = 4;

// Where keys or values of a page lie in shared memory: lines of at most 128 bytes, first those of
// all tokens with the head's first elements. A line's packs of 16 bytes change places so that a
// column of packs of 8 tokens lies in different banks, as tensor maps swizzle them.
template <typename Cached, int kDim>
struct PageFormat {
  static constexpr int kTokenBytes = kDim * static_cast<int>(sizeof(Cached));
  static constexpr int kLineBytes = kTokenBytes < 128 ? kTokenBytes : 128;
  static constexpr int kLines = kTokenBytes / kLineBytes;  // of a token
  static constexpr int kLinePacks = kLineBytes / 16;
  static constexpr int kBytes = kPageTokens * kTokenBytes;

  __device__ static uint32_t Place(int token, int pack) {
    const int turn = kLinePacks == 8 ? token % 8 : token / 2 % 4;
    return (pack / kLinePacks * kPageTokens + token) * kLineBytes + (pack % kLinePacks ^ turn) * 16;
  }
  // Place(token, pack + 2 * pairs), if `first` is Place(token, pack) and pack is 0 or 1.
  __device__ static uint32_t Behind(uint32_t first, int pairs) {
    constexpr int kLinePairs = kLinePacks / 2;
    return (first ^ pairs % kLinePairs * 32) + pairs / kLinePairs * (kPageTokens * kLineBytes);
  }

  // Pages of a head in a pool of any number of pages.
  static TensorMapDesc Boxes(const void* pool, int key_heads) {
    constexpr int64_t kMaxSlots = (int64_t{1} << 31) - kPageTokens;  // as their numbers are int32
    constexpr int64_t kElements = kLineBytes / static_cast<int64_t>(sizeof(Cached));
    const int64_t lines = int64_t{key_heads} * kLines;
    return {pool,
            sizeof(Cached),
            {kElements, kMaxSlots, lines},
            {lines * kLineBytes, kLineBytes},
            {kElements, kPageTokens, kLines}};
  }

  // A warp begins to copy a page of a key head to `to`, keys and behind them values. Positions from
  // `tokens` on become zeros.
  __device__ static void Copy(const void* keys, const void* values, int32_t page, int key_heads,
                              int head, int tokens, uint8_t* to) {
    constexpr int kPacks = kTokenBytes / 16, kTogether = 32 / kPacks;  // tokens
    const int lane = threadIdx.x % 32;
    const int64_t token_bytes = int64_t{key_heads} * kTokenBytes;
    int64_t from = (int64_t{page} * kPageTokens + lane / kPacks) * token_bytes +
                   head * kTokenBytes + lane % kPacks * 16;
#pragma unroll
    for (int first = 0; first < kPageTokens; first += kTogether) {
      const int token = first + lane / kPacks;
      const int bytes = token < tokens ? 16 : 0;
      const uint32_t place = Place(token, lane % kPacks);
      CopyAsync(to + place, static_cast<const uint8_t*>(keys) + from, bytes);
      CopyAsync(to + kBytes + place, static_cast<const uint8_t*>(values) + from, bytes);
      from += kTogether * token_bytes;
    }
  }
};

struct Call {
  // Of keys and values, for a page of a head: [lines of 128 bytes or less of a position, page
  // slots, elements of a line]. Hopper.
  CUtensorMap key_boxes, value_boxes;
  const __nv_bfloat16* queries = nullptr;  // [R, H, D]
  const void* keys = nullptr;              // pools (paged_kv_layout.h)
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
  int group = 0;         // query heads each (the last may have fewer), at most kGroupColumns
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

// kStages pages, keys and then values, in flight or arrived. kBoxes: by the tensor memory
// accelerator, two copies a page that one thread asks for, where instructions of all threads would
// take power that the GPU has better use for; whole pages then, be they used or not.
template <typename Cached, int kDim, int kStages, bool kBoxes>
class PageRing {
 public:
  using Format = PageFormat<Cached, kDim>;
  static constexpr int kStageBytes = 2 * Format::kBytes;
  static constexpr int kBytes = kStages * kStageBytes;

  // memory: kBytes at a multiple of 1,024; barriers: kStages. Both are this warp's alone.
  __device__ PageRing(const Call& call, const Units& units, uint8_t* memory,
                      SharedBarrier* barriers, int warp)
      : call_(call),
        stream_(units, call.page_table, warp),
        memory_(memory),
        barriers_(barriers),
        address_(KeepInRegister(SharedAddress(memory))) {
    if constexpr (kBoxes) {
      policy_ = EvictFirstPolicy();
      if (threadIdx.x % 32 == 0) {
        for (int i = 0; i < kStages; ++i) InitBarrier(barriers + i, 1);
        PublishBarriers();
      }
      __syncwarp();
    }
  }

  // Until what earlier kernels wrote is seen.
  __device__ void WaitForEarlier() {
    if (!waited_) GridDependencySync();
    waited_ = true;
  }

  // Begins to copy the next page, if there is one, to where all lanes have read what was there:
  // `read` is a word of it (OnlineSoftmax::Add).
  __device__ void Fill(uint32_t read) {
    if (!stream_.AtEnd()) {
      const PageStream::Page page = stream_.Take();
      if (!page.settled) WaitForEarlier();
      uint8_t* const to = memory_ + filled_ * kStageBytes;
      if constexpr (kBoxes) {
        // The copy waits for the word; nothing else orders the two.
        if (threadIdx.x % 32 == 0) CopyPage(page, static_cast<int>(read & call_.zero), to);
      } else {
        Format::Copy(call_.keys, call_.values, page.id, call_.key_heads, page.head, page.tokens,
                     to);
      }
    }
    if constexpr (!kBoxes) EndCopies();
    filled_ = filled_ + 1 == kStages ? 0 : filled_ + 1;
  }

  // Until the page that was asked for first, of those not yet taken, is there; SharedAddress of it.
  __device__ uint32_t Take() {
    if constexpr (kBoxes) {
      WaitForPhase(barriers_ + stage_, parity_);
    } else {
      WaitForCopies<kStages - 1>();
      __syncwarp();
    }
    const uint32_t page = address_ + stage_ * kStageBytes;
    if (++stage_ == kStages) {
      stage_ = 0;
      parity_ ^= 1;
    }
    return page;
  }

 private:
  __device__ void CopyPage(const PageStream::Page& page, int zero, uint8_t* to) {
    SharedBarrier* const there = barriers_ + filled_;
    const int slot = page.id * kPageTokens + zero, line = page.head * Format::kLines;
    ArriveAndExpect(there, kStageBytes);
    TmaCopy(to, &call_.key_boxes, 0, slot, line, there, policy_);
    TmaCopy(to + Format::kBytes, &call_.value_boxes, 0, slot, line, there, policy_);
  }

  const Call& call_;
  PageStream stream_;
  uint8_t* const memory_;
  SharedBarrier* const barriers_;
  const uint32_t address_;
  uint64_t policy_ = 0;
  int filled_ = 0, stage_ = 0;  // the one that is filled next, and the one that is taken next
  uint32_t parity_ = 0;
  bool waited_ = false;
};

}  // namespace tritonrl::decode

#endif  // TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_PAGE_PIPELINE_CUH_
