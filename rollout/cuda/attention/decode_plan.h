// Work plan of split-KV decode attention, with shared-prefix tiles. Plain C++.

#ifndef TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_PLAN_H_
#define TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

namespace tritonrl {

// Columns of a tensor core's mma tile: query heads that are computed at once for one key head. A
// work tile has up to kMaxColumnGroups of them for the same keys.
inline constexpr int kGroupColumns = 8, kMaxColumnGroups = 3;

// Shared-prefix tiles: rows with the same pages are rows of one tile, which reads the pages once.
struct DecodeSharing {
  int tile_rows = 1;  // maximum; 1: no sharing
  // Samples of a prompt share if a step has at least `min_sequences` sequences and they have
  // `min_pages` pages in common. With fewer, combining the parts costs more than it saves: the
  // second read comes from the L2 cache. Measured on an H200 (kernel_bench --only=together).
  int min_sequences = 48;
  int min_pages = 64;
};

// The sharing that fills the mma columns for these heads. batch_invariant: only draft tokens share,
// which have the same bits alone; samples of a prompt share nothing.
DecodeSharing DecodeSharingFor(int query_heads, int key_heads, bool batch_invariant);

// KV split: how rows are divided into parts, which different blocks compute. A row's parts, and so
// its bits, depend on its length, on the number of groups of rows that are read together, and on
// the row's own group: its draft tokens, shared prefix and longest sample.
struct DecodeSplit {
  // Tokens of a part: the power of two that divides the row into at most `parts` parts, or each
  // group's share of `together`; at least `least` and at most `most`.
  int parts = 1, together = 1;
  int64_t least = 128, most = 1 << 30;  // powers of two, at least kPageTokens

  int64_t PartTokens(int64_t length, int64_t groups) const;
  // Most parts of a row of at most `max_length` tokens, with `groups` groups or more.
  int64_t MaxParts(int64_t max_length, int64_t groups) const;
};

// The split measured as best on an H200: 16 parts of at least 128 tokens for all groups together
// while there are few rows; parts of at most 2,048 tokens (from 17 rows on 4,096), so that one long
// row does not finish alone. batch_invariant: parts of 1,024 tokens for any number of rows.
DecodeSplit DecodeSplitFor(int rows, bool batch_invariant);

// A part of the tokens that one row or a few rows attend to, from the beginning of a page on.
struct alignas(16) DecodeTile {
  int32_t row = 0, rows = 1;
  int32_t first_page = 0;  // in the page table
  int32_t tokens = 0;      // of the last row
  int32_t fewer = 0;       // tokens of each row than of the next one: 0 or 1
  // The first `settled_pages` pages hold nothing that the current step writes.
  int32_t settled_pages = 0;
  int32_t part = 0;  // index of the part in each of its rows
  int32_t unused = 0;
};

// Slots for the results of a row's parts until all are finished.
struct alignas(8) DecodeRow {
  int32_t parts = 1;
  int32_t first_slot = 0;  // of the first part; the other parts follow
};

// Arrays of a plan in GPU memory.
struct DecodeArrays {
  const DecodeTile* tiles;    // [tiles()], most tokens first
  const DecodeRow* rows;      // [rows()]
  const int32_t* used_tiles;  // [1]
};

// All arrays are in one block of memory, whose layout depends on the constructor's arguments only:
// a CUDA graph captured with a plan serves all lengths.
class DecodePlan {
 public:
  // rows: of the launch, with unused ones. max_tokens: maximum length of a row. sharing: at most as
  // many tile rows as DecodeSharingFor gives for the heads.
  DecodePlan(int rows, int64_t max_tokens, const DecodeSplit& split,
             const DecodeSharing& sharing = {});

  int rows() const { return rows_; }
  int tile_rows() const { return sharing_.tile_rows; }
  // Whether Fill uses shared_pages for this number of sequences.
  bool Shares(int64_t sequences) const;
  // Maximum number of parts of all rows, and of tiles.
  int tiles() const { return tiles_; }
  // int32 words of the arrays.
  int64_t words() const;
  // Bytes of scratch memory for the results of parts.
  int64_t PartialBytes(int query_heads, int head_dim) const;

  // Writes the used ones of words() words to `to`, to be copied to a 16-byte aligned address on the
  // GPU. lengths and page_begins have one entry for each used row, at most rows(): the number of
  // keys, its own included, and the first entry in the page table. Consecutive rows with the same
  // page_begin (draft tokens) have one key more each. The step writes the last key of each row. An
  // unused row becomes a tile without tokens. shared_pages: for each row the number of its first
  // pages that the row before it has too, or empty. Shared prefixes become parts of their own if
  // that pays.
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
  int64_t TilesOf(int64_t rows) const;  // with the same keys
  bool Pays(const std::vector<Sequence>& sequences, const Common& common) const;
  std::vector<Common> CommonOf(const std::vector<Sequence>& sequences,
                               std::span<const int32_t> shared_pages) const;
  // Tiles of the shared prefix of sequences, and of the rest of one sequence.
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
