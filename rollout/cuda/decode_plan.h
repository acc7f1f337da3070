// What a launch of attention over one token of each sequence reads beside queries and cache: who
// computes which part of a sequence. Plain C++.
#ifndef TRITONRL_ROLLOUT_CUDA_DECODE_PLAN_H_
#define TRITONRL_ROLLOUT_CUDA_DECODE_PLAN_H_

#include <cstdint>
#include <span>

namespace tritonrl {

// How rows are divided into parts, which different blocks compute. A row's parts, and so its bits,
// depend on its own length alone.
struct DecodeSplit {
  // Tokens of a part: the power of two that makes at most `parts` of the row, within these two.
  int parts = 1;
  int64_t least = 128, most = 1 << 30;  // powers of two, at least kPageTokens

  int64_t PartTokens(int64_t length) const;
  // Of any row up to this length.
  int64_t MostParts(int64_t max_length) const;
};

// The split that suits an H200: 16 parts of all rows together, of 128 tokens or more for few rows;
// parts of at most 2,048 tokens (from 17 rows on 4,096), so that a row much longer than the others
// does not end alone. batch_invariant: parts of 1,024 tokens for any number of rows, so that a
// row's bits do not depend on it.
DecodeSplit DecodeSplitFor(int rows, bool batch_invariant);

// Some of the tokens that a row sees, from the beginning of a page on.
struct alignas(16) DecodeTile {
  int32_t row = 0;
  int32_t first_page = 0;  // in the page table
  int32_t tokens = 0;
  // Its first so many pages hold nothing that the step of this launch writes.
  int32_t settled_pages = 0;
  int32_t parts = 1;       // of the row
  int32_t slot = 0;        // where what it gives lies until all parts are there
  int32_t first_slot = 0;  // of the row's first part; the others follow
  int32_t unused = 0;
};

// Arrays of a plan in the GPU's memory.
struct DecodeArrays {
  const DecodeTile* tiles;    // [tiles()], those with most tokens first
  const int32_t* used_tiles;  // [1]
};

// All arrays lie in one piece of memory whose size and whose parts' places depend on the
// constructor's arguments alone: a CUDA graph that was captured with one plan serves all lengths.
class DecodePlan {
 public:
  // rows: of the launch, used or not. max_tokens: the longest length.
  DecodePlan(int rows, int64_t max_tokens, const DecodeSplit& split);

  int rows() const { return rows_; }
  // The most there can be, for which there is room.
  int tiles() const { return tiles_; }
  // int32 words of the arrays.
  int64_t words() const;
  // Bytes of temporary memory for what parts give.
  int64_t PartialBytes(int query_heads, int head_dim) const;

  // Writes what is used of words() words, to be copied to the GPU as they are, to an address that
  // is a multiple of 16 bytes there. lengths and page_begins: of the rows that are used, at most
  // rows(): keys that a row sees, its own among them, and where its pages begin in the page table.
  // Rows may share pages. The step writes a row's last token, and of rows one behind the other that
  // begin at the same place (guesses) those of all. A row that is not used is a tile without
  // tokens.
  void Fill(std::span<const int32_t> lengths, std::span<const int32_t> page_begins,
            int32_t* to) const;

  // The arrays of a filled copy at `words`.
  DecodeArrays At(const int32_t* words) const;

 private:
  int rows_;
  DecodeSplit split_;
  int tiles_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_DECODE_PLAN_H_
