// Compares decode attention over a paged cache with fp64, and checks its guarantees about bits.

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <c10/cuda/CUDAStream.h>

#include <cmath>
#include <vector>

#include "rollout/cuda/step_kernels.h"
#include "rollout/cuda/testing/paged_cache_fixture.h"

namespace tritonrl {
namespace {

// Splits as for one row, four rows and many rows, that of batch-invariant plans, and no split.
const std::vector<DecodeSplit> kSplits = {{.parts = 16, .most = 2048},
                                          {.parts = 4, .most = 2048},
                                          {.parts = 1, .most = 4096},
                                          DecodeSplitFor(1, true),
                                          DecodeSplit()};

class PagedAttentionTest : public PagedCacheTest {
 protected:
  // A launch of decode attention in which row r is a token of the sequence in slots[r].
  struct Decode {
    DecodePlan plan;
    at::Tensor words, partial, arrived, queries, out;

    Decode(const PagedAttentionTest& test, const DecodePlan& of, const at::Tensor& q)
        : plan(of), queries(q) {
      words = Empty({plan.words()}, at::kInt);
      partial =
          Empty({plan.PartialBytes(test.shape_.query_heads, test.shape_.head_dim) + 1}, at::kByte);
      arrived = at::zeros({plan.rows(), test.shape_.query_heads}, words.options());
      out = at::empty_like(q).fill_(std::nan(""));
    }
    void Set(const std::vector<int32_t>& lengths, const std::vector<int32_t>& slots,
             const std::vector<int32_t>& shared_pages = {}) {
      std::vector<int32_t> begins;
      for (const int32_t slot : slots) begins.push_back(slot * kTablePages);
      std::vector<int32_t> filled(plan.words());
      plan.Fill(lengths, begins, shared_pages, filled.data());
      words.copy_(Ints(filled));
    }
    void Launch(const PagedAttentionTest& test, bool overlap = false,
                bool threads_copy = false) const {
      AttentionRows rows = test.Rows(queries, out);
      rows.overlap = overlap;
      rows.threads_copy = threads_copy;
      LaunchDecodeAttention(test.shape_, test.Cache(), plan,
                            plan.At(words.const_data_ptr<int32_t>()), rows,
                            {partial.data_ptr(), arrived.data_ptr<int32_t>()}, stream());
    }
  };

  // Compares each row of a finished launch with the reference.
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
      EXPECT_LT(Error(out, expected), kTolerance)
          << what << ": row " << row << " of length " << length << ", " << decode.plan.tiles()
          << " tiles";
    }
  }

  DecodePlan PlanOf(int rows, const DecodeSplit& split) const {
    DecodeSharing sharing = DecodeSharingFor(shape_.query_heads, shape_.key_heads, false);
    sharing.min_sequences = 1;
    return {rows, kMaxTokens, split, sharing};
  }
  void CheckDecodeBits(CacheType type);
  void CheckTogether(const DecodeSplit& split);
  void CheckOverlap(const DecodeSplit& split);
};

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
        CacheHeads{40, 8, 128, CacheType::kE4M3}, CacheHeads{16, 8, 64, CacheType::kE4M3},
        CacheHeads{4, 1, 128}, CacheHeads{16, 1, 128}, CacheHeads{5, 1, 64}, CacheHeads{10, 5, 64},
        CacheHeads{4, 1, 128, CacheType::kE4M3}, CacheHeads{16, 1, 64, CacheType::kE4M3}}) {
    SCOPED_TRACE(testing::Message() << Name(shape));
    MakeCache(shape);
    const std::vector<int32_t> slots = SlotsFrom(kLengths.size(), 3);
    for (int i = 0; i < slots.size(); ++i) ForgetFrom(slots[i], kLengths[i]);
    for (const DecodeSplit& split : kSplits) {
      const int rows = static_cast<int>(kLengths.size()) + 2;  // two rows are unused
      Decode decode(*this, PlanOf(rows, split), Queries(rows, 5));
      decode.Set(kLengths, slots);
      for (const bool threads_copy : {false, true}) {
        decode.out.fill_(std::nan(""));
        decode.Launch(*this, /*overlap=*/false, threads_copy);
        CheckDecode(decode, kLengths, slots, threads_copy ? "by threads" : "eager");
      }
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
  for (const DecodeSplit& split : kSplits) {
    Decode batch(*this, DecodePlan(rows, kMaxTokens, split), queries);
    batch.Set(lengths, slots);
    batch.Launch(*this);
    for (const int row : {0, 1, 8, 9, 10, 11, 23, 39}) {
      Decode alone(*this, DecodePlan(1, kMaxTokens, split), queries.slice(0, row, row + 1).clone());
      alone.Set({lengths[row]}, {slots[row]});
      alone.Launch(*this);
      EXPECT_TRUE(at::equal(alone.out[0], batch.out[row]))
          << "row " << row << " of length " << lengths[row] << ", parts " << split.parts << ": "
          << Error(alone.out[0], batch.out[row].to(at::kDouble));
    }
  }
}

TEST_P(PagedAttentionTest, OneGraphServesAllLengths) {
  MakeCache({32, 8, 128});
  for (const DecodeSplit& split : kSplits) {
    const int rows = 12;
    Decode decode(*this, DecodePlan(rows, kMaxTokens, split), Queries(rows, 7));
    decode.Set(std::vector<int32_t>(rows, 700), SlotsFrom(rows, 0));
    const Graph graph([&] { decode.Launch(*this); });
    for (const int first : {0, 5, 0}) {
      decode.out.fill_(std::nan(""));
      std::vector<int32_t> lengths(kLengths.rbegin(), kLengths.rend());
      if (first != 0) lengths.resize(7);  // the other rows are unused
      const std::vector<int32_t> slots = SlotsFrom(lengths.size(), first);
      decode.Set(lengths, slots);
      graph.Replay();
      CheckDecode(decode, lengths, slots, "graph");
    }
  }
}

// Rows 1 to 9 are a token and its draft tokens. Rows 10 to 15 are samples of a prompt of 63 pages,
// one of them with draft tokens.
void PagedAttentionTest::CheckTogether(const DecodeSplit& split) {
  std::vector<int32_t> lengths = {50}, slots = {0}, shared = {0};
  for (int i = 0; i < 9; ++i) {
    lengths.push_back(1020 + i);
    slots.push_back(1);
    shared.push_back(0);
  }
  for (const int32_t length : {1500, 1009, 1010, 1011, 3000, 1016}) {
    lengths.push_back(length);
    slots.push_back(length == 1010 || length == 1011 ? slots.back() : slots.back() + 1);
    shared.push_back(length == 1500 ? 0 : 63);
  }
  for (int slot = 3; slot <= slots.back(); ++slot) SharePages(slot, 2, 63);
  const int rows = static_cast<int>(lengths.size());
  Decode apart(*this, DecodePlan(rows, kMaxTokens, split), Queries(rows, 5));
  apart.Set(lengths, slots);
  apart.Launch(*this);
  Decode together(*this, PlanOf(rows, split), apart.queries);
  for (const bool threads_copy : {false, true}) {
    together.Set(lengths, slots, shared);
    together.out.fill_(std::nan(""));
    together.Launch(*this, /*overlap=*/false, threads_copy);
    CheckDecode(together, lengths, slots, threads_copy ? "by threads" : "eager");
    if (split.together > 1) continue;  // the parts depend on the number of groups of rows
    together.Set(lengths, slots);
    together.out.fill_(std::nan(""));
    together.Launch(*this, /*overlap=*/false, threads_copy);
    EXPECT_TRUE(at::equal(together.out, apart.out))
        << "draft tokens have the bits that each has alone";
  }
}

TEST_P(PagedAttentionTest, RowsThatSeeTheSamePagesAreReadAtOnce) {
  for (const CacheHeads& shape :
       {CacheHeads{32, 8, 128}, CacheHeads{40, 8, 128}, CacheHeads{16, 8, 64},
        CacheHeads{8, 1, 128}, CacheHeads{16, 1, 128}, CacheHeads{4, 4, 64},
        CacheHeads{32, 8, 128, CacheType::kE4M3}}) {
    MakeCache(shape);
    for (const DecodeSplit& split : kSplits) {
      SCOPED_TRACE(testing::Message() << Name(shape) << ", parts " << split.parts);
      CheckTogether(split);
    }
    CheckTogether(DecodeSplitFor(16, false));
  }
}

// Runs a layer's step as the engine does: the preceding kernel writes keys and values of the rows'
// own positions, and attention may begin while that kernel runs. Rows 6 to 8 are draft tokens of
// row 5.
void PagedAttentionTest::CheckOverlap(const DecodeSplit& split) {
  const std::vector<int32_t> lengths = {1,    16,   17,   32,   33,   1000,
                                        1001, 1002, 1003, 4096, 4097, 5000};
  const std::vector<int32_t> slots = {3, 10, 17, 24, 31, 38, 38, 38, 38, 1, 8, 15};
  const int rows = static_cast<int>(lengths.size());
  std::vector<at::Tensor> places;
  std::vector<int32_t> positions;
  for (int row = 0; row < rows; ++row) {
    positions.push_back(lengths[row] - 1);
    places.push_back(PageSlots(slots[row], Ints({positions[row]}).to(at::kLong)));
  }
  const at::Tensor written = at::cat(places), page_slots = written.to(at::kInt);
  const at::Tensor turned_by = Ints(positions);
  const at::Tensor angles = RandomTensor({kMaxTokens, shape_.head_dim / 2}, 4, 3.0).to(at::kFloat);
  const at::Tensor cos = angles.cos().to(device()), sin = angles.sin().to(device());
  const int64_t width = (shape_.query_heads + 2 * shape_.key_heads) * shape_.head_dim;
  const at::Tensor qkv = Numbers({rows, width}, 5);
  Decode decode(*this, PlanOf(rows, split), Queries(rows, 5));
  decode.Set(lengths, slots);
  const auto write = [&](bool overlap) {
    LaunchQkvToCache({.shape = shape_,
                      .rows = rows,
                      .qkv = qkv.const_data_ptr(),
                      .cos = cos.const_data_ptr<float>(),
                      .sin = sin.const_data_ptr<float>(),
                      .positions = turned_by.const_data_ptr<int32_t>(),
                      .page_slots = page_slots.const_data_ptr<int32_t>(),
                      .queries = decode.queries.data_ptr(),
                      .keys = stored_[0].data_ptr(),
                      .values = stored_[1].data_ptr(),
                      .overlap = overlap,
                      .stream = stream()});
  };
  const auto step = [&] {
    write(true);
    decode.Launch(*this, true);
  };
  step();
  const Graph graph(step);
  for (int i = 0; i < 40; ++i) {
    qkv.normal_();
    write(false);
    c10::cuda::getCurrentCUDAStream().synchronize();
    decode.Launch(*this);
    const at::Tensor expected = decode.out.clone();
    ASSERT_TRUE(expected.isfinite().all().item<bool>());
    // A read that comes too early finds these NaN.
    for (at::Tensor& pool : stored_) {
      pool.view(at::kByte).view({pool.size(0), -1}).index_fill_(0, written, 0xff);
    }
    decode.queries.fill_(std::nan(""));
    decode.out.fill_(std::nan(""));
    graph.Replay();
    ASSERT_TRUE(at::equal(decode.out, expected)) << "replay " << i;
  }
}

TEST_P(PagedAttentionTest, OverlapReadsWhatTheKernelInFrontWrites) {
  for (const CacheType type : {CacheType::kBFloat16, CacheType::kE4M3}) {
    MakeCache({32, 8, 128, type});
    for (const DecodeSplit& split : kSplits) {
      SCOPED_TRACE(testing::Message() << Name(shape_) << ", parts " << split.parts);
      CheckOverlap(split);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gpus, PagedAttentionTest, testing::ValuesIn(TestedGpus()));

}  // namespace
}  // namespace tritonrl
