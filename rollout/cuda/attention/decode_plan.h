// Work plan of split-KV decode attention, with shared-prefix tiles. Plain C++ without CUDA.

#ifndef TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_PLAN_H_
#define TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

namespace tritonrl {

// kGroupColumns is the number of columns of a tensor core's mma tile: the query heads that one mma
// computes for one key head. A work tile has up to kMaxColumnGroups such groups for the same keys.
inline constexpr int kGroupColumns = 8, kMaxColumnGroups = 3;

// Shared-prefix tiles: rows that attend to the same pages form one tile, which reads them once.
struct DecodeSharing {
  int tile_rows = 1;  // maximum; 1: no sharing
  // Samples of a prompt share tiles if a step has at least `min_sequences` sequences and the
  // samples have `min_pages` pages in common. With fewer, combining the parts costs more than
  // sharing saves, because the second read hits the L2 cache. Measured on an H200 (kernel_bench
  // --only=together).
  int min_sequences = 48;
  int min_pages = 64;
};

// The sharing that fills the mma columns for these heads. batch_invariant: only draft tokens share
// tiles, because each has the same bits as alone; samples of a prompt share no tiles.
DecodeSharing DecodeSharingFor(int query_heads, int key_heads, bool batch_invariant);

// KV split: the division of rows into parts, which different blocks compute. Rows whose keys are
// read together form a group. A row's parts, and so its bits, depend on its length, on the number
// of groups, and on its own group: its draft tokens, shared prefix and longest sample.
struct DecodeSplit {
  // A part's number of tokens is the smallest power of two that divides the row into at most
  // max(parts, together / groups) parts, but at least `least` and at most `most`.
  int parts = 1, together = 1;
  int64_t least = 128, most = 1 << 30;  // powers of two, at least kPageTokens

  int64_t PartTokens(int64_t length, int64_t groups) const;
  // Maximum number of parts of a row of at most `max_length` tokens, with at least `groups` groups.
  int64_t MaxParts(int64_t max_length, int64_t groups) const;
};

// The fastest split measured on an H200. With few rows, all groups together get 16 parts of at
// least 128 tokens. A part has at most 2,048 tokens (from 17 rows on 4,096), so that one long row
// does not finish alone. batch_invariant: parts of 1,024 tokens for any number of rows.
DecodeSplit DecodeSplitFor(int rows, bool batch_invariant);

// One part of the keys of one row or a few consecutive rows. It begins at the beginning of a page.
struct alignas(16) DecodeTile {
  int32_t row = 0, rows = 1;
  int32_t first_page = 0;  // index in the page table
  int32_t tokens = 0;      // of the last row
  int32_t fewer = 0;       // each row has this many tokens fewer than the next one: 0 or 1
  // The current step does not write to the first `settled_pages` pages.
  int32_t settled_pages = 0;
  int32_t part = 0;  // index of the part in each of its rows
  int32_t unused = 0;
};

// A row's number of parts, and the slots that hold the parts' results until all are finished.
struct alignas(8) DecodeRow {
  int32_t parts = 1;
  int32_t first_slot = 0;  // slot of the first part; those of the other parts follow
};

// Arrays of a plan in GPU memory.
struct DecodeArrays {
  const DecodeTile* tiles;    // [tiles()], most tokens first
  const DecodeRow* rows;      // [rows()]
  const int32_t* used_tiles;  // [1]
};

// The plan's arrays are in one block of memory, whose layout depends only on the constructor's
// arguments. So a CUDA graph captured with a plan serves all lengths.
class DecodePlan {
 public:
  // rows: number of rows of the launch, unused ones included. max_tokens: maximum length of a row.
  // sharing.tile_rows: at most that of DecodeSharingFor for the heads.
  DecodePlan(int rows, int64_t max_tokens, const DecodeSplit& split,
             const DecodeSharing& sharing = {});

  int rows() const { return rows_; }
  int tile_rows() const { return sharing_.tile_rows; }
  // Whether Fill uses shared_pages for this number of sequences.
  bool Shares(int64_t sequences) const;
  // Maximum number of tiles, and of the parts of all rows together.
  int tiles() const { return tiles_; }
  // int32 words of the arrays.
  int64_t words() const;
  // Bytes of scratch memory for the results of parts.
  int64_t PartialBytes(int query_heads, int head_dim) const;

  // Writes the arrays to `to` [words()], without unused tiles; they must be copied to a 16-byte
  // aligned address on the GPU. lengths and page_begins have one entry for each used row, at most
  // rows(): the row's number of keys, its own included, and its first entry in the page table.
  // Consecutive rows with the same page_begin (a token and its draft tokens) must have one key more
  // each. The step writes the last key of each row. An unused row becomes a tile without tokens.
  // shared_pages: empty, or for each row the number of first pages that it shares with the row
  // before. A shared prefix becomes parts of its own if that saves enough reads.
  void Fill(std::span<const int32_t> lengths, std::span<const int32_t> page_begins,
            std::span<const int32_t> shared_pages, int32_t* to) const;

  // The arrays of a filled copy at `words`.
  DecodeArrays At(const int32_t* words) const;

 private:
  struct Sequence;
  struct Common;
  struct Filling;
  static std::vector<Sequence> SequencesOf(std::span<const int32_t> lengths,
                                           std::span<const int32_t> page_begins);
  int64_t TilesOf(int64_t rows) const;  // number of tiles for `rows` rows with the same keys
  bool Pays(const std::vector<Sequence>& sequences, const Common& common) const;
  std::vector<Common> CommonOf(const std::vector<Sequence>& sequences,
                               std::span<const int32_t> shared_pages) const;
  // FillCommon adds the tiles of a shared prefix, FillOwn those of the rest of one sequence.
  void FillCommon(const std::vector<Sequence>& sequences, const Common& common,
                  Filling* filling) const;
  void FillOwn(const Sequence& sequence, const Common& common, Filling* filling) const;

  int rows_;
  DecodeSplit split_;
  DecodeSharing sharing_;
  int tiles_;
};

// The plan of a generation step for these heads.
DecodePlan DecodePlanFor(int rows, int64_t max_tokens, int query_heads, int key_heads,
                         bool batch_invariant);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_PLAN_H_
