#include "model/cuda/attention/packed_lengths.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace tritonrl {
namespace {

std::vector<int32_t> Numbers(const at::Tensor& x) {
  const at::Tensor flat = x.contiguous();
  return {flat.const_data_ptr<int32_t>(), flat.const_data_ptr<int32_t>() + flat.numel()};
}

std::vector<int64_t> OffsetsOf(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> offsets = {0};
  for (const int64_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

TEST(PackedLengthsTest, SequencesOfOneLengthAreOneCallWithoutPadding) {
  const PackedLengths packed = PackLengths(OffsetsOf({4096, 4096, 4096, 4096}), at::kCPU);
  ASSERT_EQ(packed.buckets.size(), 1);
  const AttentionBucket& bucket = packed.buckets[0];
  EXPECT_EQ(bucket.count(), 4);
  EXPECT_EQ(bucket.max_length, 4096);
  EXPECT_EQ(Numbers(bucket.offsets), (std::vector<int32_t>{0, 4096, 8192, 12288, 16384}));
  EXPECT_EQ(Numbers(bucket.lengths), (std::vector<int32_t>{4096, 4096, 4096, 4096}));
  EXPECT_EQ(Numbers(bucket.OffsetsFor(6)), (std::vector<int32_t>{0, 24576, 49152, 73728, 98304}));
  EXPECT_EQ(bucket.OffsetsFor(6).const_data_ptr(), bucket.OffsetsFor(6).const_data_ptr());
}

TEST(PackedLengthsTest, FewLengthsForSequencesByThemselves) {
  EXPECT_EQ(PaddedLength(1), 128);
  EXPECT_EQ(PaddedLength(128), 128);
  EXPECT_EQ(PaddedLength(129), 256);
  EXPECT_EQ(PaddedLength(2047), 2048);
  EXPECT_EQ(PaddedLength(2049), 2304);  // steps of 4096 / 16
  EXPECT_EQ(PaddedLength(16379), 16384);
  EXPECT_EQ(PaddedLength(16385), 18432);
  std::set<int64_t> padded;
  for (int64_t length = 1; length <= 32768; ++length) {
    padded.insert(PaddedLength(length));
    ASSERT_GE(PaddedLength(length), length);
    ASSERT_LE(PaddedLength(length), std::max(length + 127, length * 9 / 8));
  }
  // Four plans per length (forward and backward, in place and copied) stay below the 512 plans of
  // the cache.
  EXPECT_LE(padded.size(), 48);
}

TEST(PackedLengthsTest, LongAndShortSequencesAreApart) {
  // The empty sequence is in no bucket; the bucket of the longest sequences comes first.
  const PackedLengths packed = PackLengths(OffsetsOf({300, 1, 9000, 0, 128, 400, 257}), at::kCPU);
  ASSERT_EQ(packed.buckets.size(), 3);
  EXPECT_EQ(packed.buckets[0].sequences, (std::vector<int64_t>{2}));
  EXPECT_EQ(packed.buckets[0].max_length, 10240);  // steps of 16384 / 8
  EXPECT_EQ(packed.buckets[1].sequences, (std::vector<int64_t>{0, 5, 6}));
  EXPECT_EQ(packed.buckets[1].max_length, 512);
  EXPECT_EQ(Numbers(packed.buckets[1].offsets),
            (std::vector<int32_t>{0, 9429, 9829, 10086, 10086}));
  EXPECT_EQ(Numbers(packed.buckets[1].lengths), (std::vector<int32_t>{300, 400, 257, 0}));
  EXPECT_EQ(packed.buckets[2].sequences, (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(Numbers(packed.buckets[2].lengths), (std::vector<int32_t>{1, 128}));
}

TEST(PackedLengthsTest, EverySequenceOnceAndLittleMoreRoomThanTokens) {
  uint64_t state = 1;
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> lengths(1 + round % 40);
    for (int64_t& length : lengths) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      length = static_cast<int64_t>((state >> 33) % (uint64_t{1} << (state >> 60)));
    }
    const PackedLengths packed = PackLengths(OffsetsOf(lengths), at::kCPU);
    std::vector<int> seen(lengths.size(), 0);
    for (const AttentionBucket& bucket : packed.buckets) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(bucket.offsets.const_data_ptr()) % 16, 0);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(bucket.lengths.const_data_ptr()) % 16, 0);
      int64_t tokens = 0;
      for (const int64_t i : bucket.sequences) {
        ++seen[i];
        tokens += std::max<int64_t>(lengths[i], 64);
        EXPECT_LE(lengths[i], bucket.max_length);
      }
      EXPECT_LE(bucket.count() * bucket.max_length, 4 * tokens + 2 * bucket.max_length);
    }
    for (size_t i = 0; i < lengths.size(); ++i) EXPECT_EQ(seen[i], lengths[i] > 0 ? 1 : 0);
  }
}

TEST(PackedLengthsTest, EmptyBatches) {
  EXPECT_TRUE(PackLengths({0}, at::kCPU).buckets.empty());
  EXPECT_TRUE(PackLengths({0, 0}, at::kCPU).buckets.empty());
}

TEST(PackedLengthsTest, HeadsAreDividedWhereTheFixedOrderNeedsMuchMemory) {
  EXPECT_EQ(DeterministicBackwardCalls(32, 8, 2048), 1);   // 256 MiB
  EXPECT_EQ(DeterministicBackwardCalls(32, 8, 8192), 2);   // 4 GiB
  EXPECT_EQ(DeterministicBackwardCalls(32, 8, 16384), 8);  // 16 GiB
  EXPECT_EQ(DeterministicBackwardCalls(32, 8, 65536), 8);  // at most the key heads
  EXPECT_EQ(DeterministicBackwardCalls(40, 5, 16384), 5);  // only divisors of the key heads
  EXPECT_EQ(DeterministicBackwardCalls(8, 1, 65536), 1);
}

}  // namespace
}  // namespace tritonrl
