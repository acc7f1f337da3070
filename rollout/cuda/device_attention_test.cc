// Attention of one token a sequence over a paged cache against the same in fp64, and its promises
// about bits.

#include <ATen/ops/full.h>

#include <cmath>
#include <vector>

#include "rollout/cuda/device_paged_fixture.h"

namespace tritonrl {
namespace {

const std::vector<DecodeSplit> kSplits = {DecodeSplitFor(1, false), DecodeSplitFor(4, false),
                                          DecodeSplitFor(256, false), DecodeSplitFor(1, true),
                                          DecodeSplit()};

class PagedAttentionTest : public PagedCacheTest {
 protected:
  // Row r is a token of the sequence in slots[r].
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
    void Set(const std::vector<int32_t>& lengths, const std::vector<int32_t>& slots) {
      std::vector<int32_t> begins;
      for (const int32_t slot : slots) begins.push_back(slot * kTablePages);
      std::vector<int32_t> filled(plan.words());
      plan.Fill(lengths, begins, filled.data());
      words.copy_(Ints(filled));
    }
    void Launch(const PagedAttentionTest& test) const {
      LaunchDecodeAttention(test.shape_, test.Cache(), plan,
                            plan.At(words.const_data_ptr<int32_t>()), test.Rows(queries, out),
                            {partial.data_ptr(), arrived.data_ptr<int32_t>()}, stream());
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
      EXPECT_LT(Error(out, expected), kTolerance)
          << what << ": row " << row << " of length " << length << ", " << decode.plan.tiles()
          << " tiles";
    }
  }

  void CheckDecodeBits(CacheType type);
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
        CacheHeads{40, 8, 128, CacheType::kE4M3}, CacheHeads{16, 8, 64, CacheType::kE4M3}}) {
    SCOPED_TRACE(testing::Message() << Name(shape));
    MakeCache(shape);
    const std::vector<int32_t> slots = SlotsFrom(kLengths.size(), 3);
    for (int i = 0; i < slots.size(); ++i) ForgetFrom(slots[i], kLengths[i]);
    for (const DecodeSplit& split : kSplits) {
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
      if (first != 0) lengths.resize(7);  // the rest is not used
      const std::vector<int32_t> slots = SlotsFrom(lengths.size(), first);
      decode.Set(lengths, slots);
      graph.Replay();
      CheckDecode(decode, lengths, slots, "graph");
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PagedAttentionTest);
INSTANTIATE_TEST_SUITE_P(Gpus, PagedAttentionTest, testing::ValuesIn(TestedGpus()));

}  // namespace
}  // namespace tritonrl
