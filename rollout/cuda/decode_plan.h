// What a launch of attention over one token of each sequence reads beside queries and cache:
// lengths, places in the page table, and who computes which part of a long sequence. Plain C++.
#ifndef TRITONRL_ROLLOUT_CUDA_DECODE_PLAN_H_
#define TRITONRL_ROLLOUT_CUDA_DECODE_PLAN_H_

#include <cstdint>
#include <span>

namespace tritonrl {

// Arrays of a plan in the GPU's memory. R rows of the batch, N tiles.
struct DecodeArrays {
  const int32_t* lengths;      // [R] keys that a row sees, its own among them; 0: unused
  const int32_t* page_begins;  // [R + 1] where its pages begin in the page table
  const int32_t* row_ids;      // [R + 1] 0 .. R
  const int32_t* requests;     // [N] a tile's row
  const int32_t* query_tiles;  // [N] zeros
  const int32_t* key_tiles;    // [N] which of the row's parts
  const int32_t* tile_tokens;  // [1] tokens of a part
  // Only with a split:
  const int32_t* part_begins;  // [R + 1] where a row's tiles begin; the last: tiles that are used
};

// A row's part of the cache is cut into tiles of `split_tokens`, which different blocks compute and
// a second kernel merges, or is one tile (split_tokens 0). What a row gives depends on split_tokens
// and on the row alone, to the bit. All arrays lie in one piece of memory whose size and whose
// parts' places depend on the constructor's arguments alone: a CUDA graph that was captured with
// one plan serves all lengths.
class DecodePlan {
 public:
  // rows: of the launch, used or not. max_tokens: the longest length.
  DecodePlan(int rows, int64_t max_tokens, int split_tokens);

  int rows() const { return rows_; }
  bool splits() const { return splits_; }
  // The most there can be, for which there is room.
  int tiles() const { return tiles_; }
  // int32 words of the arrays.
  int64_t words() const { return words_; }
  // Bytes of temporary memory for parts' results; 0 without a split. H query heads of D elements.
  int64_t PartialBytes(int query_heads, int head_dim) const;

  // Writes words() words, to be copied to the GPU as they are. lengths and page_begins: of the
  // rows that are used, at most rows(); page_begins[r] is where row r's pages begin in a page
  // table of table_size entries. Rows may share pages.
  void Fill(std::span<const int32_t> lengths, std::span<const int32_t> page_begins,
            int32_t table_size, int32_t* to) const;

  // The arrays of a filled copy at `words`.
  DecodeArrays At(const int32_t* words) const;

 private:
  int rows_;
  bool splits_;
  int tile_tokens_;
  int tiles_;
  int64_t words_;
};

// The split that suits an H200: 0 (none) from 33 rows on, where a block for each row and key head
// is enough, below it 128 tokens for one row up to 2,048 for 32. batch_invariant: 1,024 for any
// number of rows, so that a row's bits do not depend on it.
int DecodeSplitTokens(int rows, bool batch_invariant);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_DECODE_PLAN_H_
