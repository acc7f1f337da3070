#include "model/cuda/attention/packed_lengths.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace tritonrl {
namespace {

constexpr int64_t kShortest = 128;  // sequences up to this length share a bucket
constexpr int64_t kDeterministicRoom = int64_t{2} << 30;
constexpr int64_t kAlign = 4;  // of arrays: 4 int32 elements, which are 16 bytes

int64_t PowerFrom(int64_t x) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(x)));
}

// Rounds `length` up to a multiple of max(kShortest, next power of two / parts).
int64_t RoundedUp(int64_t length, int64_t parts) {
  const int64_t step = std::max(kShortest, PowerFrom(length) / parts);
  return (length + step - 1) / step * step;
}

// Writes the offsets and the lengths of a bucket, padded to `count` sequences.
void Fill(const PackedLengths& packed, const AttentionBucket& bucket, int32_t* offsets,
          int32_t* lengths, int64_t count) {
  const int64_t present = static_cast<int64_t>(bucket.sequences.size());
  const int64_t end = packed.offsets[bucket.sequences.back() + 1];
  for (int64_t i = 0; i <= count; ++i) {
    offsets[i] = static_cast<int32_t>(i < present ? packed.begin(bucket.sequences[i]) : end);
    if (i == count) continue;
    lengths[i] = static_cast<int32_t>(i < present ? packed.length(bucket.sequences[i]) : 0);
  }
}

}  // namespace

const at::Tensor& AttentionBucket::OffsetsFor(int64_t stride) const {
  const auto [found, fresh] = scaled_.try_emplace(stride);
  if (fresh) found->second = offsets * stride;
  return found->second;
}

PackedLengths PackLengths(const std::vector<int64_t>& offsets, at::Device device) {
  TORCH_CHECK(offsets.back() <= std::numeric_limits<int32_t>::max(), "a batch of ", offsets.back(),
              " rows");
  PackedLengths packed;
  packed.offsets = offsets;
  std::map<int64_t, AttentionBucket, std::greater<>> by_power;
  for (int64_t i = 0; i + 1 < static_cast<int64_t>(offsets.size()); ++i) {
    const int64_t length = packed.length(i);
    if (length == 0) continue;
    AttentionBucket& bucket = by_power[PowerFrom(std::max(kShortest, length))];
    bucket.sequences.push_back(i);
    bucket.max_length = std::max(bucket.max_length, RoundedUp(length, 8));
  }
  // One array holds the offsets and lengths of all buckets, so that one copy moves them to the
  // device.
  struct Place {
    int64_t offsets, lengths, count;
  };
  std::vector<Place> places;
  int64_t size = 0;
  for (const auto& [power, bucket] : by_power) {
    const int64_t count = PowerFrom(static_cast<int64_t>(bucket.sequences.size()));
    const int64_t first = size, second = first + (count + kAlign) / kAlign * kAlign;
    places.push_back({first, second, count});
    size = second + (count + kAlign - 1) / kAlign * kAlign;
  }
  at::Tensor host = at::empty({size}, at::kInt);
  int32_t* numbers = host.data_ptr<int32_t>();
  size_t next = 0;
  for (const auto& [power, bucket] : by_power) {
    const Place& place = places[next++];
    Fill(packed, bucket, numbers + place.offsets, numbers + place.lengths, place.count);
  }
  const at::Tensor moved = host.to(device);
  next = 0;
  for (auto& [power, bucket] : by_power) {
    const Place& place = places[next++];
    bucket.offsets = moved.narrow(0, place.offsets, place.count + 1);
    bucket.lengths = moved.narrow(0, place.lengths, place.count);
    packed.buckets.push_back(std::move(bucket));
  }
  return packed;
}

int64_t PaddedLength(int64_t length) { return RoundedUp(length, 16); }

int64_t DeterministicBackwardCalls(int64_t query_heads, int64_t key_heads, int64_t length) {
  for (int64_t calls = 1; calls < key_heads; ++calls) {
    if (key_heads % calls != 0) continue;
    if (2 * query_heads / calls * length * length <= kDeterministicRoom) return calls;
  }
  return key_heads;
}

}  // namespace tritonrl
