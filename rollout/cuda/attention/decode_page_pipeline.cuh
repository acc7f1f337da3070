// The pages that decode attention (decode_kernel.cuh) reads: their layout in shared memory, their
// order for each warp, and the ring into which a warp copies them.
#ifndef TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_PAGE_PIPELINE_CUH_
#define TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_PAGE_PIPELINE_CUH_

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "model/cuda/common/ptx.cuh"
#include "model/cuda/common/tensor_map_desc.h"
#include "rollout/cuda/attention/decode_plan.h"
#include "rollout/cuda/attention/paged_kv_layout.h"

namespace tritonrl::decode {

inline constexpr int kWarps = 4;

// Layout of a page's keys or values of one key head in shared memory: lines of at most 128 bytes,
// first the lines with the head's first elements for all tokens. The packs of 16 bytes in a line
// are swizzled as tensor maps do, so that the same pack of 8 tokens is in different banks.
template <typename Cached, int kDim>
struct PageFormat {
  static constexpr int kTokenBytes = kDim * static_cast<int>(sizeof(Cached));
  static constexpr int kLineBytes = kTokenBytes < 128 ? kTokenBytes : 128;
  static constexpr int kLines = kTokenBytes / kLineBytes;  // of a token
  static constexpr int kLinePacks = kLineBytes / 16;
  static constexpr int kBytes = kPageTokens * kTokenBytes;

  // Offset of a token's pack in bytes.
  __device__ static uint32_t Place(int token, int pack) {
    const int turn = kLinePacks == 8 ? token % 8 : token / 2 % 4;
    return (pack / kLinePacks * kPageTokens + token) * kLineBytes + (pack % kLinePacks ^ turn) * 16;
  }
  // Place(token, pack + 2 * pairs), if `first` is Place(token, pack) and pack is 0 or 1.
  __device__ static uint32_t Behind(uint32_t first, int pairs) {
    constexpr int kLinePairs = kLinePacks / 2;
    return (first ^ pairs % kLinePairs * 32) + pairs / kLinePairs * (kPageTokens * kLineBytes);
  }

  // A tensor map whose boxes are a head's pages, for a pool of any number of pages.
  static TensorMapDesc Boxes(const void* pool, int key_heads) {
    constexpr int64_t kMaxSlots = (int64_t{1} << 31) - kPageTokens;  // page slots are int32
    constexpr int64_t kElements = kLineBytes / static_cast<int64_t>(sizeof(Cached));
    const int64_t lines = int64_t{key_heads} * kLines;
    return {pool,
            sizeof(Cached),
            {kElements, kMaxSlots, lines},
            {lines * kLineBytes, kLineBytes},
            {kElements, kPageTokens, kLines}};
  }

  // Starts a warp's copy of a page of a key head to `to`: keys, then values. Positions from
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

// Arguments of a launch.
struct Call {
  // For Hopper: tensor maps of keys and values. A box is a page of a head: [lines of a position,
  // page slots, elements of a line], with lines of at most 128 bytes.
  CUtensorMap key_boxes, value_boxes;
  const __nv_bfloat16* queries = nullptr;  // [R, H, D]
  const void* keys = nullptr;              // pools (paged_kv_layout.h)
  const void* values = nullptr;
  const int32_t* page_table = nullptr;
  const DecodeTile* tiles = nullptr;
  const DecodeRow* rows = nullptr;
  const int32_t* used_tiles = nullptr;
  __nv_bfloat16* out = nullptr;  // [R, H, D]
  // Scratch for rows with several parts: results of parts [slots, H, D], base-2 logarithms of their
  // sums of weights [slots, H], and the number of finished parts [R, K, groups], zero before and
  // after a launch.
  __nv_bfloat16* parts = nullptr;
  float* lses = nullptr;
  int32_t* arrived = nullptr;
  int query_heads = 0, key_heads = 0;
  int groups = 0;        // groups of the query heads of a key head
  int group = 0;         // query heads of a group (the last may have fewer), at most kGroupColumns
  float scale_log2 = 0;  // scale of the scores, times log2(e)
  uint32_t zero = 0;     // 0, unknown to the compiler: `x & zero` waits for x to be read
};

// A unit of work: a tile, a key head, and a group of its query heads. Its columns are these heads
// of the tile's first row, then those of the next row, and so on.
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
  // The unit of this number; a unit without pages if the number is too large.
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
  // This block's next unit.
  __device__ Unit After(const Unit& unit) const { return Load(unit.number + gridDim.x); }

 private:
  const Call& call_;
  const int count_;
};

// The pages that a warp reads, in order: every kWarps-th page of each of its block's units. The
// warp reads 32 page numbers at a time, so early that it never waits for them.
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
    int tokens;    // the unit's tokens from the page's first token on
    bool settled;  // no kernel that may still run writes to the page
  };
  __device__ bool AtEnd() const { return !units_.Has(now_.unit); }
  // Must be called by all lanes of the warp; all get the same page.
  __device__ Page Take() {
    const int number = warp_ + kWarps * (now_.base + index_);
    const Page page = {__shfl_sync(~0u, now_.ids, index_), now_.unit.key_head,
                       now_.unit.tile.tokens - number * kPageTokens,
                       number < now_.unit.tile.settled_pages};
    if (++index_ == now_.count) TakeNextRun();
    return page;
  }

 private:
  // Up to 32 of this warp's pages of a unit, from the base-th on.
  struct Run {
    Unit unit;
    int base;
    int count;    // at most 32
    int32_t ids;  // number of page base + lane
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
  // Moves on to the next run that has pages.
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
  int index_ = 0;  // of the next page in now_
  Run now_, next_;
  Unit after_;  // the unit after next_.unit
};

// A warp's ring of kStages pages (keys, then values) that are in flight or have arrived. kBoxes:
// the tensor memory accelerator copies whole pages, used or not, with two copies a page that one
// thread issues. Without kBoxes all threads copy, which takes power that a Hopper GPU needs
// elsewhere.
template <typename Cached, int kDim, int kStages, bool kBoxes>
class PageRing {
 public:
  using Format = PageFormat<Cached, kDim>;
  static constexpr int kStageBytes = 2 * Format::kBytes;
  static constexpr int kBytes = kStages * kStageBytes;

  // memory: kBytes bytes at a multiple of 1,024; barriers: kStages. No other warp may use them.
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

  // Waits until the writes of earlier kernels are visible.
  __device__ void WaitForEarlier() {
    if (!waited_) GridDependencySync();
    waited_ = true;
  }

  // Starts the copy of the next page, if there is one. All lanes must have read the stage that it
  // overwrites; `read` is a word of the last page read (OnlineSoftmax::Add).
  __device__ void Fill(uint32_t read) {
    if (!stream_.AtEnd()) {
      const PageStream::Page page = stream_.Take();
      if (!page.settled) WaitForEarlier();
      uint8_t* const to = memory_ + filled_ * kStageBytes;
      if constexpr (kBoxes) {
        // The copy waits for the word to be read; nothing else orders the copy after the reads.
        if (threadIdx.x % 32 == 0) CopyPage(page, static_cast<int>(read & call_.zero), to);
      } else {
        Format::Copy(call_.keys, call_.values, page.id, call_.key_heads, page.head, page.tokens,
                     to);
      }
    }
    if constexpr (!kBoxes) EndCopies();
    filled_ = filled_ + 1 == kStages ? 0 : filled_ + 1;
  }

  // Waits for the oldest page that has not been taken and returns its SharedAddress.
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
  int filled_ = 0, stage_ = 0;  // the stage that is filled next; the stage that is taken next
  uint32_t parity_ = 0;
  bool waited_ = false;
};

}  // namespace tritonrl::decode

#endif  // TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_PAGE_PIPELINE_CUH_
