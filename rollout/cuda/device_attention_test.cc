// Attention over a paged cache against the same in fp64, and its promises about bits.

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "rollout/cuda/device_fixture.h"
#include "rollout/cuda/paged_attention.h"

namespace tritonrl {
namespace {

constexpr int64_t kMaxTokens = 5120;
constexpr int64_t kTablePages = kMaxTokens / kPageTokens;  // of a sequence
constexpr int kSlots = 44;
constexpr double kTolerance = 0.006;  // bf16 rounds the result to 0.002 of it

// 0: no split, as for many rows.
const std::vector<int> kSplits = {0, 1024};

class PagedAttentionTest : public DeviceTest {
 protected:
  // A pool in which the pages of kSlots sequences of kMaxTokens lie in random order; the rest of
  // the cache is NaN, so that it shows if anything of it is read.
  void MakeCache(const CacheHeads& shape) {
    shape_ = shape;
    const int64_t pages = kSlots * kTablePages + 50;
    std::vector<int32_t> order(pages);
    std::iota(order.begin(), order.end(), 0);
    Philox(1).Shuffle(&order);
    order.resize(kSlots * kTablePages);
    table_ = Ints(order);
    pools_[0] = Empty({pages * kPageTokens, shape.key_heads, shape.head_dim}, at::kBFloat16);
    pools_[1] = at::empty_like(pools_[0]);
    for (at::Tensor& pool : pools_) {
      pool.normal_();
      at::Tensor used = at::zeros({pages}, table_.options().dtype(at::kBool));
      used.index_fill_(0, table_.to(at::kLong), 1);
      pool.view({pages, -1}).masked_fill_(used.logical_not().unsqueeze(1), std::nan(""));
    }
    Store();
  }

  // The pools as the kernels read them; of 8-bit numbers, which the pools are then rounded to.
  void Store() {
    for (int i = 0; i < 2; ++i) {
      const bool fp8 = shape_.type == CacheType::kE4M3;
      stored_[i] = fp8 ? pools_[i].to(at::kFloat8_e4m3fn) : pools_[i];
      if (fp8) pools_[i] = stored_[i].to(at::kBFloat16);
    }
  }

  PagedKeysValues Cache() const {
    return {stored_[0].const_data_ptr(), stored_[1].const_data_ptr(),
            table_.const_data_ptr<int32_t>()};
  }
  AttentionRows Rows(const at::Tensor& queries, const at::Tensor& out) const {
    return {queries.const_data_ptr(), out.data_ptr(), queries.size(0),
            1.0f / std::sqrt(static_cast<float>(shape_.head_dim))};
  }
  at::Tensor Queries(int64_t rows, uint64_t seed) const {
    return Numbers({rows, shape_.query_heads, shape_.head_dim}, seed);
  }

  at::Tensor PageSlots(int slot, const at::Tensor& positions) const {
    const at::Tensor pages = table_.to(at::kLong).slice(0, slot * kTablePages);
    return pages.index_select(0, positions.div(kPageTokens, "floor")) * kPageTokens +
           positions % kPageTokens;
  }

  // From position `length` of a sequence on nothing has been written yet.
  void ForgetFrom(int slot, int64_t length) {
    const at::Tensor rest = at::arange(length, kMaxTokens, table_.options().dtype(at::kLong));
    for (at::Tensor& pool : pools_) pool.index_fill_(0, PageSlots(slot, rest), std::nan(""));
    Store();
  }

  // The last rows of `length` positions of the sequence in `slot`: queries [rows, H, D].
  at::Tensor Reference(const at::Tensor& queries, int slot, int64_t length) const {
    const int64_t rows = queries.size(0), group = shape_.query_heads / shape_.key_heads;
    const at::Tensor positions = at::arange(length, table_.options().dtype(at::kLong));
    const at::Tensor slots = PageSlots(slot, positions);
    const at::Tensor k = pools_[0].index_select(0, slots).to(at::kDouble).transpose(0, 1);
    const at::Tensor v = pools_[1].index_select(0, slots).to(at::kDouble).transpose(0, 1);
    const at::Tensor q = queries.to(at::kDouble)
                             .view({rows, shape_.key_heads, group, shape_.head_dim})
                             .permute({1, 2, 0, 3});  // [K, G, rows, D]
    at::Tensor scores = q.matmul(k.unsqueeze(1).transpose(2, 3)) / std::sqrt(shape_.head_dim);
    const at::Tensor own = positions.slice(0, length - rows).unsqueeze(1);  // of each row
    scores.masked_fill_(positions.unsqueeze(0) > own, -std::numeric_limits<double>::infinity());
    const at::Tensor out = scores.softmax(-1).matmul(v.unsqueeze(1));
    return out.permute({2, 0, 1, 3}).reshape({rows, shape_.query_heads, shape_.head_dim});
  }

  static double Error(const at::Tensor& actual, const at::Tensor& expected) {
    const at::Tensor difference = actual.to(at::kDouble) - expected;
    return (difference.norm() / expected.norm()).item<double>();
  }

  // Row r is a token of the sequence in slots[r].
  struct Decode {
    DecodePlan plan;
    at::Tensor words, partial, queries, out;

    Decode(const PagedAttentionTest& test, const DecodePlan& of, const at::Tensor& q)
        : plan(of), queries(q) {
      words = Empty({plan.words()}, at::kInt);
      partial =
          Empty({plan.PartialBytes(test.shape_.query_heads, test.shape_.head_dim) + 1}, at::kByte);
      out = at::empty_like(q).fill_(std::nan(""));
    }
    void Set(const std::vector<int32_t>& lengths, const std::vector<int32_t>& slots) {
      std::vector<int32_t> begins;
      for (const int32_t slot : slots) begins.push_back(slot * kTablePages);
      std::vector<int32_t> filled(plan.words());
      plan.Fill(lengths, begins, kSlots * kTablePages, filled.data());
      words.copy_(Ints(filled));
    }
    void Launch(const PagedAttentionTest& test) const {
      LaunchDecodeAttention(test.shape_, test.Cache(), plan,
                            plan.At(words.const_data_ptr<int32_t>()), test.Rows(queries, out),
                            partial.data_ptr(), stream());
    }
  };

  // Compares each row of a launch that ran with the reference.
  void CheckDecode(const Decode& decode, const std::vector<int32_t>& lengths,
                   const std::vector<int32_t>& slots, const char* what) const {
    for (int64_t row = 0; row < decode.plan.rows(); ++row) {
      const int64_t length = row < lengths.size() ? lengths[row] : 0;
      const at::Tensor out = decode.out[row];
      if (length == 0) {
        EXPECT_TRUE(out.eq(0).all().item<bool>()) << what << ": row " << row << " of length 0";
        continue;
      }
      const at::Tensor expected =
          Reference(decode.queries.slice(0, row, row + 1), slots[row], length)[0];
      EXPECT_LT(Error(out, expected), kTolerance) << what << ": row " << row << " of length "
                                                  << length << ", split " << decode.plan.splits();
    }
  }

  void CheckDecodeBits(CacheType type);

  CacheHeads shape_;
  at::Tensor table_, pools_[2], stored_[2];
};

std::string Name(const CacheHeads& shape) {
  return absl::StrCat(shape.query_heads, " heads of ", shape.head_dim,
                      shape.type == CacheType::kE4M3 ? " in 8 bits" : "");
}

const std::vector<int32_t> kLengths = {0, 1, 15, 16, 17, 31, 32, 33, 1000, 1024, 1025, 5000};

std::vector<int32_t> SlotsFrom(int count, int first) {
  std::vector<int32_t> slots;
  for (int i = 0; i < count; ++i) slots.push_back((first + i * 7) % kSlots);
  return slots;
}

TEST_P(PagedAttentionTest, DecodeIsAsInFp64) {
  for (const CacheHeads& shape :
       {CacheHeads{32, 8, 128}, CacheHeads{40, 8, 128}, CacheHeads{4, 4, 128},
        CacheHeads{16, 8, 64}, CacheHeads{32, 8, 128, CacheType::kE4M3},
        CacheHeads{40, 8, 128, CacheType::kE4M3}, CacheHeads{16, 8, 64, CacheType::kE4M3}}) {
    SCOPED_TRACE(testing::Message() << Name(shape));
    MakeCache(shape);
    const std::vector<int32_t> slots = SlotsFrom(kLengths.size(), 3);
    for (int i = 0; i < slots.size(); ++i) ForgetFrom(slots[i], kLengths[i]);
    for (const int split : kSplits) {
      const int rows = static_cast<int>(kLengths.size()) + 2;  // two that are not used
      Decode decode(*this, DecodePlan(rows, kMaxTokens, split), Queries(rows, 5));
      decode.Set(kLengths, slots);
      decode.Launch(*this);
      CheckDecode(decode, kLengths, slots, "eager");
    }
  }
}

TEST_P(PagedAttentionTest, DecodeAloneAndInABatchHasTheSameBits) {
  for (const CacheType type : {CacheType::kBFloat16, CacheType::kE4M3}) CheckDecodeBits(type);
}

void PagedAttentionTest::CheckDecodeBits(CacheType type) {
  MakeCache({32, 8, 128, type});
  SCOPED_TRACE(testing::Message() << Name(shape_));
  const int rows = 40;
  std::vector<int32_t> lengths(rows);
  for (int row = 0; row < rows; ++row) lengths[row] = kLengths[row % kLengths.size()] + row;
  const std::vector<int32_t> slots = SlotsFrom(rows, 0);
  const at::Tensor queries = Queries(rows, 6);
  for (const int split : kSplits) {
    Decode batch(*this, DecodePlan(rows, kMaxTokens, split), queries);
    batch.Set(lengths, slots);
    batch.Launch(*this);
    for (const int row : {0, 1, 8, 9, 10, 11, 23, 39}) {
      Decode alone(*this, DecodePlan(1, kMaxTokens, split), queries.slice(0, row, row + 1).clone());
      alone.Set({lengths[row]}, {slots[row]});
      alone.Launch(*this);
      EXPECT_TRUE(at::equal(alone.out[0], batch.out[row]))
          << "row " << row << " of length " << lengths[row] << ", split " << split << ": "
          << Error(alone.out[0], batch.out[row].to(at::kDouble));
    }
  }
}

TEST_P(PagedAttentionTest, OneGraphServesAllLengths) {
  MakeCache({32, 8, 128});
  for (const int split : kSplits) {
    const int rows = 12;
    Decode decode(*this, DecodePlan(rows, kMaxTokens, split), Queries(rows, 7));
    decode.Set(std::vector<int32_t>(rows, 700), SlotsFrom(rows, 0));
    const Graph graph([&] { decode.Launch(*this); });
    for (const int first : {0, 5}) {
      decode.out.fill_(std::nan(""));
      std::vector<int32_t> lengths(kLengths.rbegin(), kLengths.rend());
      if (first != 0) lengths.resize(7);  // the rest is not used
      const std::vector<int32_t> slots = SlotsFrom(lengths.size(), first);
      decode.Set(lengths, slots);
      graph.Replay();
      CheckDecode(decode, lengths, slots, "graph");
    }
  }
}

struct ChunkCase {
  int32_t rows, context;
};

class PagedChunkTest : public PagedAttentionTest {
 protected:
  at::Tensor Run(const at::Tensor& queries, const std::vector<Chunk>& chunks, const ChunkDevice& on,
                 bool batch_invariant = false) const {
    at::Tensor out = at::empty_like(queries).fill_(std::nan(""));
    const ChunkPlan plan = PlanChunks(shape_, on, chunks, kSlots * kTablePages, batch_invariant);
    const at::Tensor words = Ints(plan.words);
    LaunchChunkAttention(shape_, Cache(), plan, words.const_data_ptr<int32_t>(), Rows(queries, out),
                         stream());
    return out;
  }

  // In a batch against fp64, and alone for the same bits.
  void Check(const std::vector<ChunkCase>& cases, const ChunkDevice& on) {
    std::vector<Chunk> chunks;
    int32_t rows = 0;
    for (int i = 0; i < cases.size(); ++i) {
      const int32_t begin = (2 + 5 * i) % kSlots * kTablePages;
      chunks.push_back({rows, cases[i].rows, cases[i].rows + cases[i].context, begin});
      rows += cases[i].rows;
      ForgetFrom(static_cast<int>(begin / kTablePages), chunks.back().length);
    }
    const at::Tensor queries = Queries(rows, 8);
    const at::Tensor out = Run(queries, chunks, on);
    for (const Chunk& chunk : chunks) {
      SCOPED_TRACE(testing::Message()
                   << chunk.rows << " rows of " << chunk.length << (on.hopper ? " (Hopper)" : ""));
      const at::Tensor own = out.slice(0, chunk.first_row, chunk.first_row + chunk.rows);
      const at::Tensor q = queries.slice(0, chunk.first_row, chunk.first_row + chunk.rows).clone();
      const int slot = static_cast<int>(chunk.page_begin / kTablePages);
      EXPECT_LT(Error(own, Reference(q, slot, chunk.length)), kTolerance);
      const at::Tensor alone = Run(q, {{0, chunk.rows, chunk.length, chunk.page_begin}}, on);
      EXPECT_TRUE(at::equal(alone, own)) << Error(alone, own.to(at::kDouble));
    }
  }
};

TEST_P(PagedChunkTest, ChunksAreAsInFp64) {
  const std::vector<ChunkCase> cases = {{1, 0},   {17, 0},    {5, 100},   {127, 0},  {128, 37},
                                        {200, 1}, {300, 999}, {1500, 16}, {2, 4000}, {129, 4800}};
  for (const CacheHeads& shape :
       {CacheHeads{32, 8, 128}, CacheHeads{10, 2, 128}, CacheHeads{8, 4, 64},
        CacheHeads{32, 8, 128, CacheType::kE4M3}, CacheHeads{8, 4, 64, CacheType::kE4M3}}) {
    SCOPED_TRACE(testing::Message() << Name(shape));
    MakeCache(shape);
    const ChunkDevice own = CurrentChunkDevice();
    Check(cases, own);
    if (own.hopper) Check(cases, {false, own.multiprocessors});
  }
}

// A prompt of 1,500 tokens in one chunk and in several, each beside another sequence's.
TEST_P(PagedChunkTest, BatchInvariantChunksHaveTheSameBitsHoweverAPromptIsCut) {
  const int32_t length = 1500, begin = 3 * kTablePages, other = 9 * kTablePages;
  for (const CacheHeads& shape :
       {CacheHeads{32, 8, 128}, CacheHeads{10, 2, 128}, CacheHeads{8, 4, 64},
        CacheHeads{32, 8, 128, CacheType::kE4M3}, CacheHeads{8, 4, 64, CacheType::kE4M3}}) {
    SCOPED_TRACE(testing::Message() << Name(shape));
    MakeCache(shape);
    const at::Tensor queries = Queries(length, 4), others = Queries(40, 5);
    const at::Tensor whole = Run(queries, {{0, length, length, begin}}, CurrentChunkDevice(), true);
    EXPECT_LT(Error(whole, Reference(queries, 3, length)), kTolerance);
    for (const std::vector<int32_t>& cuts : std::vector<std::vector<int32_t>>{
             {1}, {16, 32, 48}, {1499}, {64, 128, 640, 1000}, {7, 13, 200, 333, 1024}}) {
      for (size_t i = 0; i <= cuts.size(); ++i) {
        const int32_t first = i == 0 ? 0 : cuts[i - 1], end = i < cuts.size() ? cuts[i] : length;
        const at::Tensor own = queries.slice(0, first, end);
        // What lies behind it is not there yet, or is another sequence's.
        const at::Tensor out =
            Run(at::cat({others, own}), {{0, 40, 1200, other}, {40, end - first, end, begin}},
                CurrentChunkDevice(), true);
        EXPECT_TRUE(at::equal(out.slice(0, 40), whole.slice(0, first, end)))
            << "[" << first << ", " << end << ")";
      }
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PagedAttentionTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PagedChunkTest);
INSTANTIATE_TEST_SUITE_P(Gpus, PagedAttentionTest, testing::ValuesIn(TestedGpus()));
INSTANTIATE_TEST_SUITE_P(Gpus, PagedChunkTest, testing::ValuesIn(TestedGpus()));

}  // namespace
}  // namespace tritonrl
