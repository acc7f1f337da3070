// Runs the decode attention kernel thread by thread on a CPU and checks the pages that it reads,
// the elements of its fragments and its results. device_test and kernel_bench check the
// instructions themselves and their speed on a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#define TRITONRL_EMULATED_THREADS 128
#include "model/cuda/testing/emulated_block.h"
#include "model/cuda/testing/emulated_mma.h"
#include "model/cuda/testing/emulated_tma.h"
#include "rollout/cuda/attention/decode_kernel.cuh"

namespace tritonrl {
namespace {

using decode::Call;

float ToFloat(__nv_bfloat16 x) { return __bfloat162float(x); }
float ToFloat(__nv_fp8_e4m3 x) { return static_cast<float>(x); }

struct Sizes {
  int query_heads, key_heads;
};

struct Row {
  int32_t length;
  bool draft_token = false;  // of the previous row's sequence, one token longer
  int32_t shared = 0;        // first pages that are those of the previous row
};

// Rows over a cache in which only the positions within the rows' lengths are written; all others
// are NaN.
template <typename Cached, int kDim>
class DecodeCase {
 public:
  static constexpr int kPages = 160;

  DecodeCase(const Sizes& sizes, const std::vector<Row>& rows, const DecodeSplit& split,
             int tile_rows = 1)
      : sizes_(sizes),
        rows_(rows),
        tile_rows_(tile_rows),
        plan_(rows.size(), 420, split, {tile_rows, /*min_sequences=*/1, /*min_pages=*/16}) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal(0, 1);
    for (auto* pool : {&keys_, &values_}) {
      pool->assign(int64_t{kPages} * kPageTokens * sizes.key_heads * kDim,
                   Cached(std::numeric_limits<float>::quiet_NaN()));
    }
    table_.resize(kPages);
    for (int i = 0; i < kPages; ++i) table_[i] = i;
    std::shuffle(table_.begin(), table_.end(), random);
    std::vector<int32_t> lengths, shared;
    int32_t begin = 0, end = 0;
    for (const Row& row : rows) {
      const int32_t in_front = begin;
      if (!row.draft_token) begin = end;
      std::copy_n(table_.begin() + in_front, row.shared, table_.begin() + begin);
      end = begin + static_cast<int32_t>(PagesFor(std::max(row.length, 1)));
      for (int t = row.draft_token ? row.length - 1 : row.shared * kPageTokens; t < row.length;
           ++t) {
        for (int i = 0; i < sizes.key_heads * kDim; ++i) {
          keys_[Place(begin, t) + i] = Cached(normal(random));
          values_[Place(begin, t) + i] = Cached(normal(random));
        }
      }
      lengths.push_back(row.length);
      shared.push_back(row.shared);
      begins_.push_back(begin);
    }
    EXPECT_LE(end, kPages);
    for (size_t i = 0; i < rows.size() * sizes.query_heads * kDim; ++i) {
      queries_.push_back(__float2bfloat16_rn(3 * normal(random)));
    }
    words_.resize(plan_.words() + 4);
    // The plan must be at a multiple of 16 bytes, as on the GPU.
    while (reinterpret_cast<uintptr_t>(words()) % 16 != 0) ++offset_;
    plan_.Fill(lengths, begins_, shared, words());
  }

  template <int kStages, bool kBoxes>
  void Run(int blocks) {
    const DecodeArrays arrays = plan_.At(words());
    const int each = sizes_.query_heads / sizes_.key_heads;
    const int groups = (each + kGroupColumns - 1) / kGroupColumns;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    out_.assign(queries_.size(), __nv_bfloat16(nan));
    parts_.assign(int64_t{plan_.tiles()} * sizes_.query_heads * kDim, __nv_bfloat16(nan));
    lses_.assign(int64_t{plan_.tiles()} * sizes_.query_heads, nan);
    arrived_.assign(rows_.size() * sizes_.query_heads, 0);
    const Call call = {.key_boxes = BoxesOf(keys_),
                       .value_boxes = BoxesOf(values_),
                       .queries = queries_.data(),
                       .keys = keys_.data(),
                       .values = values_.data(),
                       .page_table = table_.data(),
                       .tiles = arrays.tiles,
                       .rows = arrays.rows,
                       .used_tiles = arrays.used_tiles,
                       .out = out_.data(),
                       .parts = parts_.data(),
                       .lses = lses_.data(),
                       .arrived = arrived_.data(),
                       .query_heads = sizes_.query_heads,
                       .key_heads = sizes_.key_heads,
                       .groups = groups,
                       .group = (each + groups - 1) / groups,
                       .scale_log2 = Scale() * 1.442695f};
    emulated_bytes_copied = 0;
    emulated_early_copies.clear();
    ForgetEmulatedBoxes();
    EmulatedBlock::Run(blocks, [&] { decode::DecodeKernel<Cached, kDim, kStages, kBoxes>(call); });
    EXPECT_EQ(kBoxes ? emulated_box_bytes : emulated_bytes_copied,
              Positions(kBoxes) * 2 * sizes_.key_heads * kDim * int64_t{sizeof(Cached)} * groups)
        << "each key and value is read once";
    EXPECT_FALSE(emulated_box_outside || emulated_wrong_bytes || EmulatedBoxesAreLeft());
    CheckEarlyCopies(kBoxes ? emulated_early_boxes : emulated_early_copies);
    EXPECT_EQ(std::count(arrived_.begin(), arrived_.end(), 0), arrived_.size());
  }

  // Compares each row with attention in fp64.
  void Check() const {
    for (size_t row = 0; row < rows_.size(); ++row) {
      for (int head = 0; head < sizes_.query_heads; ++head) {
        const std::vector<double> expected = Expected(row, head);
        const __nv_bfloat16* actual = &out_[(row * sizes_.query_heads + head) * kDim];
        double error = 0, norm = 0;
        for (int i = 0; i < kDim; ++i) {
          error += std::pow(ToFloat(actual[i]) - expected[i], 2);
          norm += std::pow(expected[i], 2);
        }
        ASSERT_LE(std::sqrt(error), 0.006 * std::sqrt(norm))
            << "row " << row << " of " << rows_[row].length << ", head " << head;
      }
    }
  }
  const std::vector<__nv_bfloat16>& out() const { return out_; }
  // Number of the plan's used tiles.
  int tiles() const { return *plan_.At(words()).used_tiles; }

 private:
  // Number of positions that the tiles read: those of each tile's last row, with whole_pages
  // rounded up to pages.
  int64_t Positions(bool whole_pages) const {
    const DecodeArrays arrays = plan_.At(words());
    int64_t positions = 0;
    for (int i = 0; i < *arrays.used_tiles; ++i) {
      const int64_t tokens = arrays.tiles[i].tokens;
      positions += whole_pages ? PagesFor(tokens) * kPageTokens : tokens;
    }
    if (tile_rows_ > 1) return positions;
    int64_t expected = 0;
    for (const Row& row : rows_) {
      expected += whole_pages ? PagesFor(row.length) * kPageTokens : row.length;
    }
    EXPECT_EQ(positions, expected);
    return positions;
  }

  CUtensorMap BoxesOf(const std::vector<Cached>& pool) const {
    CUtensorMap map = {decode::PageFormat<Cached, kDim>::Boxes(pool.data(), sizes_.key_heads)};
    map.sizes[1] = kPages * kPageTokens;  // positions after the pool count as outside
    return map;
  }

  // Copies that do not wait for earlier kernels must read no page that this step writes, which is
  // the page of a row's last token.
  void CheckEarlyCopies(const std::vector<const void*>& copies) const {
    const int64_t page_elements = int64_t{kPageTokens} * sizes_.key_heads * kDim;
    for (const void* from : copies) {
      const auto* key = static_cast<const Cached*>(from);
      const bool in_keys = key >= keys_.data() && key < keys_.data() + keys_.size();
      const int64_t page = (key - (in_keys ? keys_ : values_).data()) / page_elements;
      for (size_t row = 0; row < rows_.size(); ++row) {
        if (rows_[row].length == 0) continue;
        const int32_t last = table_[begins_[row] + (rows_[row].length - 1) / kPageTokens];
        ASSERT_NE(page, last) << "of row " << row;
      }
    }
  }

  int32_t* words() { return words_.data() + offset_; }
  const int32_t* words() const { return words_.data() + offset_; }
  float Scale() const { return 1 / std::sqrt(static_cast<float>(kDim)); }
  int64_t Place(int32_t begin, int token) const {
    const int64_t slot = PageSlot(table_[begin + token / kPageTokens], token);
    return slot * sizes_.key_heads * kDim;
  }

  std::vector<double> Expected(size_t row, int head) const {
    const int key_head = head / (sizes_.query_heads / sizes_.key_heads);
    const __nv_bfloat16* query = &queries_[(row * sizes_.query_heads + head) * kDim];
    std::vector<double> sum(kDim);
    double total = 0;
    for (int t = 0; t < rows_[row].length; ++t) {
      const int64_t at = Place(begins_[row], t) + key_head * kDim;
      double score = 0;
      for (int i = 0; i < kDim; ++i) score += double{ToFloat(query[i])} * ToFloat(keys_[at + i]);
      const double weight = std::exp(score * Scale());
      total += weight;
      for (int i = 0; i < kDim; ++i) sum[i] += weight * ToFloat(values_[at + i]);
    }
    for (double& x : sum) x = total == 0 ? 0 : x / total;
    return sum;
  }

  const Sizes sizes_;
  const std::vector<Row> rows_;
  const int tile_rows_;
  const DecodePlan plan_;
  std::vector<Cached> keys_, values_;
  std::vector<int32_t> table_, begins_, words_;
  int offset_ = 0;
  std::vector<__nv_bfloat16> queries_, out_, parts_;
  std::vector<float> lses_;
  std::vector<int32_t> arrived_;
};

const std::vector<Row> kRows = {{1}, {15}, {16}, {17}, {300}, {64}, {65}, {0}, {129}, {5}};

bool SameBits(const std::vector<__nv_bfloat16>& a, const std::vector<__nv_bfloat16>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](auto x, auto y) {
    return __bfloat16_as_ushort(x) == __bfloat16_as_ushort(y);
  });
}

template <typename Cached, int kDim, int kStages, bool kBoxes>
void CheckAllBy() {
  for (const Sizes& sizes : {Sizes{4, 1}, Sizes{10, 2}, Sizes{8, 1}, Sizes{2, 2}, Sizes{12, 1}}) {
    for (const int64_t most : {1 << 20, 64}) {
      SCOPED_TRACE(testing::Message() << sizes.query_heads << " heads for " << sizes.key_heads
                                      << ", parts of " << most);
      DecodeCase<Cached, kDim> one(sizes, kRows, {.parts = 1, .least = 16, .most = most});
      one.template Run<kStages, kBoxes>(1);
      one.Check();
      const std::vector<__nv_bfloat16> bits = one.out();
      one.template Run<kStages, kBoxes>(7);
      EXPECT_TRUE(SameBits(bits, one.out())) << "bits do not depend on who computes them";
    }
  }
}

template <typename Cached, int kDim, int kStages>
void CheckAll() {
  CheckAllBy<Cached, kDim, kStages, false>();
  CheckAllBy<Cached, kDim, kStages, true>();
}

TEST(DecodeKernelTest, HeadsOf128) { CheckAll<__nv_bfloat16, 128, 3>(); }
TEST(DecodeKernelTest, HeadsOf128InASmallRing) { CheckAll<__nv_bfloat16, 128, 2>(); }
TEST(DecodeKernelTest, HeadsOf64) { CheckAll<__nv_bfloat16, 64, 6>(); }
TEST(DecodeKernelTest, EightBitHeadsOf128) { CheckAll<__nv_fp8_e4m3, 128, 6>(); }
TEST(DecodeKernelTest, EightBitHeadsOf64) { CheckAll<__nv_fp8_e4m3, 64, 12>(); }

// Draft tokens of sequences whose last tokens are in one page, are in two pages, or begin a page;
// groups that are too large for a tile; a group in which only some rows have another part.
template <typename Cached, int kDim, int kStages, bool kBoxes>
void CheckDraftTokens(const Sizes& sizes, const DecodeSplit& split) {
  SCOPED_TRACE(testing::Message() << sizes.query_heads << " heads for " << sizes.key_heads
                                  << ", parts of " << split.most);
  std::vector<Row> rows;
  for (const auto& [first, count] :
       {std::pair{1, 3}, {16, 2}, {30, 9}, {64, 4}, {70, 1}, {61, 5}, {16, 1}}) {
    for (int i = 0; i < count; ++i) rows.push_back({first + i, i > 0});
  }
  DecodeCase<Cached, kDim> alone(sizes, rows, split);
  alone.template Run<kStages, kBoxes>(5);
  alone.Check();
  const int most = DecodeSharingFor(sizes.query_heads, sizes.key_heads, false).tile_rows;
  DecodeCase<Cached, kDim> together(sizes, rows, split, most);
  EXPECT_LT(together.tiles(), alone.tiles());
  together.template Run<kStages, kBoxes>(3);
  together.Check();
  EXPECT_TRUE(SameBits(alone.out(), together.out())) << "rows have the bits that each has alone";
}

TEST(DecodeKernelTest, DraftTokensByBoxes) {
  for (const Sizes& sizes : {Sizes{4, 1}, Sizes{10, 2}, Sizes{2, 2}}) {
    CheckDraftTokens<__nv_bfloat16, 128, 3, true>(sizes, {.least = 64, .most = 64});
  }
  CheckDraftTokens<__nv_bfloat16, 64, 6, true>({4, 1}, {.least = 16});
}

TEST(DecodeKernelTest, DraftTokensByThreads) {
  CheckDraftTokens<__nv_bfloat16, 128, 3, false>({4, 1}, {.least = 64, .most = 64});
  CheckDraftTokens<__nv_fp8_e4m3, 64, 12, false>({8, 1}, {.least = 16});
}

// Samples of a prompt of 17 pages, one with draft tokens; a sample that has a page less in common;
// rows of other sequences before and after; rows with too few pages in common.
TEST(DecodeKernelTest, WhatRowsHaveInCommonIsReadOnce) {
  const std::vector<Row> rows = {{20},
                                 {290},
                                 {289, false, 17},
                                 {290, true},
                                 {291, true},
                                 {273, false, 17},
                                 {330, false, 16},
                                 {40},
                                 {41, false, 2},
                                 {410, false, 0}};
  for (const int64_t most : {1 << 20, 64}) {
    const DecodeSplit split = {.parts = 1, .least = 16, .most = most};
    const auto check = [&](auto* one, int tiles) {
      one->Check();
      EXPECT_EQ(one->tiles(), tiles) << "parts of " << most;
    };
    DecodeCase<__nv_bfloat16, 64> six({4, 1}, rows, split, 6);
    six.Run<6, true>(3);
    check(&six, most > 64 ? 9 : 19);
    DecodeCase<__nv_fp8_e4m3, 128> three({8, 1}, rows, split, 3);
    three.Run<6, false>(3);
    check(&three, most > 64 ? 10 : 23);
  }
}

// Each warp has more pages of the row than its ring holds.
TEST(DecodeKernelTest, ALongRow) {
  DecodeCase<__nv_bfloat16, 64> one({2, 1}, {{320}, {3}, {16}}, DecodeSplit());
  one.Run<4, false>(1);
  one.Check();
  EXPECT_FALSE(emulated_early_copies.empty()) << "its first pages do not wait";
  one.Run<4, true>(1);
  one.Check();
  EXPECT_FALSE(emulated_early_boxes.empty()) << "its first pages do not wait";
}

}  // namespace
}  // namespace tritonrl
