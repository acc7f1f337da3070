// Work plan of split-KV decode attention, with shared-prefix tiles. Plain C++.
#ifndef TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_PLAN_H_
#define TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

namespace tritonrl {

// Columns of a tensor core's product: query heads that are computed at once for one key head. A
// tile has up to kMaxColumnGroups of such products for the same keys.
inline constexpr int kGroupColumns = 8, kMaxColumnGroups = 3;

// Which rows are read together: rows that see the same pages are rows of one tile, which reads them
// once.
struct DecodeSharing {
  int tile_rows = 1;  // at most; 1: none
  // Samples of a prompt are, if a step has at least so many sequences and they have so many pages
  // in common. With fewer it costs more to put the parts together than is saved: an L2 cache gives
  // the second reading anyway, only not as fast. Measured on an H200 (kernel_bench
  // --only=together).
  int min_sequences = 48;
  int min_pages = 64;
};

// That fills the products of the heads. batch_invariant: a row's bits must not depend on others, so
// samples of a prompt share nothing; draft tokens do, of which each has the bits that it has alone.
DecodeSharing DecodeSharingFor(int query_heads, int key_heads, bool batch_invariant);

// How rows are divided into parts, which different blocks compute. A row's parts, and so its bits,
// depend on its length, on how many groups there are of rows that are read together, and on what
// it is read with: draft tokens behind it, and what samples have in common and the longest of them.
struct DecodeSplit {
  // Tokens of a part: the power of two that makes at most so many parts of the row, but at least
  // `least` and at most `most`: `parts`, or what falls to each group of `together`.
  int parts = 1, together = 1;
  int64_t least = 128, most = 1 << 30;  // powers of two, at least kPageTokens

  int64_t PartTokens(int64_t length, int64_t groups) const;
  // Of any row up to this length, with so many groups or more.
  int64_t MaxParts(int64_t max_length, int64_t groups) const;
};

// The split that suits an H200: 16 parts of all groups together, of 128 tokens or more, while they
// are few; parts of at most 2,048 tokens (from 17 rows on 4,096), so that a row much longer than
// the others does not end alone. batch_invariant: parts of 1,024 tokens for any number of rows, so
// that a row's bits do not depend on it.
DecodeSplit DecodeSplitFor(int rows, bool batch_invariant);

// Some of the tokens that a row, or each of a few rows, sees, from the beginning of a page on.
struct alignas(16) DecodeTile {
  int32_t row = 0, rows = 1;
  int32_t first_page = 0;  // in the page table
  int32_t tokens = 0;      // that the last row sees
  int32_t fewer = 0;       // that each other row sees than the one behind it: 0 or 1
  // Its first so many pages hold nothing that the step of this launch writes.
  int32_t settled_pages = 0;
  int32_t part = 0;  // which one of each of its rows
  int32_t unused = 0;
};

// Where what a row's parts give lies until all are there.
struct alignas(8) DecodeRow {
  int32_t parts = 1;
  int32_t first_slot = 0;  // of the first part; the others follow
};

// Arrays of a plan in the GPU's memory.
struct DecodeArrays {
  const DecodeTile* tiles;    // [tiles()], those with most tokens first
  const DecodeRow* rows;      // [rows()]
  const int32_t* used_tiles;  // [1]
};

// All arrays lie in one piece of memory whose size and whose parts' places depend on the
// constructor's arguments alone: a CUDA graph that was captured with one plan serves all lengths.
class DecodePlan {
 public:
  // rows: of the launch, used or not. max_tokens: the longest length. sharing: at most as many rows
  // of a tile as DecodeSharingFor the heads.
  DecodePlan(int rows, int64_t max_tokens, const DecodeSplit& split,
             const DecodeSharing& sharing = {});

  int rows() const { return rows_; }
  int tile_rows() const { return sharing_.tile_rows; }
  // Whether what so many sequences have in common may be read once: else shared_pages is not used.
  bool Shares(int64_t sequences) const;
  // The most parts of all rows there can be, for which there is room; tiles are as many or fewer.
  int tiles() const { return tiles_; }
  // int32 words of the arrays.
  int64_t words() const;
  // Bytes of temporary memory for what parts give.
  int64_t PartialBytes(int query_heads, int head_dim) const;

  // Writes what is used of words() words, to be copied to the GPU as they are, to an address that
  // is a multiple of 16 bytes there. lengths and page_begins: of the rows that are used, at most
  // rows(): keys that a row sees, its own among them, and where its pages begin in the page table.
  // Rows one behind the other that begin at the same place (draft tokens) must see one token more
  // each. The step writes a row's last token, and of such rows those of all. A row that is not used
  // is a tile without tokens. shared_pages: of each row, or empty: how many of its first pages are
  // those of the row in front. What sequences have in common becomes parts of its own, if it pays.
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
  int64_t TilesOf(int64_t rows) const;  // that see the same
  bool Pays(const std::vector<Sequence>& sequences, const Common& common) const;
  std::vector<Common> CommonOf(const std::vector<Sequence>& sequences,
                               std::span<const int32_t> shared_pages) const;
  // Tiles of what is common to sequences, and of what is a sequence's own.
  void FillCommon(const std::vector<Sequence>& sequences, const Common& common,
                  Filling* filling) const;
  void FillOwn(const Sequence& sequence, const Common& common, Filling* filling) const;

  int rows_;
  DecodeSplit split_;
  DecodeSharing sharing_;
  int tiles_;
};

// The plan of a step of generation for such heads.
DecodePlan DecodePlanFor(int rows, int64_t max_tokens, int query_heads, int key_heads,
                         bool batch_invariant);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_ATTENTION_DECODE_PLAN_H_
