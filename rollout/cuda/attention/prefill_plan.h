// Work plan of prefill attention (FlashInfer FA2 and FA3). Plain C++ without CUDA.

#ifndef TRITONRL_ROLLOUT_CUDA_ATTENTION_PREFILL_PLAN_H_
#define TRITONRL_ROLLOUT_CUDA_ATTENTION_PREFILL_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "rollout/cuda/attention/paged_kv_layout.h"

namespace tritonrl {

// Rows [first_row, first_row + rows) of the queries are the last `rows` of `length` positions of a
// sequence. The keys and values of all `length` positions are in the cache. A row attends to all
// positions up to its own.
struct PrefillChunk {
  int32_t first_row = 0;
  int32_t rows = 0;
  int32_t length = 0;
  int32_t page_begin = 0;  // first entry in the page table
};

// Chunks of at least this many rows are computed in tiles of 128 (query rows times heads with FA2,
// query rows with FA3), shorter chunks in tiles of 64 query rows times heads. A chunk's results
// depend only on its own sizes.
//
// With one tile size, FA2's bits do not depend on the cut into chunks (at kInvariantChunk): key
// steps begin at the sequence's first position, and masked keys add zeros to a row's sums and do
// not change its maximum. Another tile size has other key steps, and FA3 starts with the last keys.
// So a batch-invariant plan uses only FA2's long tiles.
inline constexpr int32_t kLongChunk = 128;

struct PrefillDevice {
  bool hopper = false;      // compute capability 9.0
  int multiprocessors = 0;  // blocks of the Hopper kernel's launch
};

// Chunks of one tile size for the FA2 kernel: n chunks, N tiles. The arrays are given by their
// offsets in PrefillPlan::words.
struct Fa2Chunks {
  int chunks = 0, tiles = 0;
  int64_t first_rows = 0;   // [n]
  int64_t rows = 0;         // [n]
  int64_t lengths = 0;      // [n]
  int64_t page_begins = 0;  // [n + 1]
  int64_t requests = 0;     // [N] index of the tile's chunk
  int64_t query_tiles = 0;  // [N]
  int64_t key_tiles = 0;    // [N] zeros
  int64_t tile_tokens = 0;  // [1]
  int64_t max_rows = 0;
};

// W work items (a tile of 128 rows, a query head) for the FA3 kernel; block b computes items
// [begins[b], begins[b + 1]). Offsets as in Fa2Chunks.
struct Fa3Chunks {
  int pieces = 0;                                                      // W
  int64_t begins = 0;                                                  // [blocks + 1]
  int64_t query_tiles = 0, first_rows = 0, page_begins = 0, rows = 0;  // [W] each
  int64_t lengths = 0, heads = 0, requests = 0;
};

struct PrefillPlan {
  std::vector<int32_t> words;  // to be copied to the GPU
  Fa2Chunks short_chunks, long_chunks;
  // Replaces long_chunks on a GPU with FA3, for heads of 128 in bf16.
  Fa3Chunks hopper_chunks;
};

// With batch_invariant, prompts are cut at multiples of this number of positions. The rows of an
// FA2 tile (128 rows times query heads per key head) rescale their sums together, so a row's bits
// depend on the other rows of its tile. At multiples of 128 positions a new tile begins for any
// number of heads.
inline constexpr int kInvariantChunk = 128;

// table_size: entries of the page table. Empty chunks are skipped. batch_invariant: all chunks are
// in long_chunks.
PrefillPlan PlanPrefill(const CacheHeads& shape, const PrefillDevice& device,
                        std::span<const PrefillChunk> chunks, int32_t table_size,
                        bool batch_invariant = false);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_ATTENTION_PREFILL_PLAN_H_
