#include "parallel/zero_shard_plan.h"

#include <algorithm>

namespace tritonrl {
namespace {

constexpr int64_t kAlignment = 64;  // elements

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

ZeroShardPlan::ZeroShardPlan(int64_t flat_size, int ranks, int64_t bucket_elements)
    : flat_size_(flat_size), ranks_(ranks), bucket_(bucket_elements) {}

int64_t ZeroShardPlan::buckets() const { return DivideUp(flat_size_, bucket_); }

FlatRange ZeroShardPlan::Bucket(int64_t bucket) const {
  return {bucket * bucket_, std::min(flat_size_, (bucket + 1) * bucket_)};
}

int64_t ZeroShardPlan::ShardSize(const FlatRange& bucket) const {
  if (ranks_ == 1) return bucket.size();
  return DivideUp(DivideUp(bucket.size(), ranks_), kAlignment) * kAlignment;
}

FlatRange ZeroShardPlan::Shard(int64_t bucket, int rank) const {
  const FlatRange whole = Bucket(bucket);
  const int64_t size = ShardSize(whole);
  return {std::min(whole.end, whole.begin + rank * size),
          std::min(whole.end, whole.begin + (rank + 1) * size)};
}

int64_t ZeroShardPlan::LocalOffset(int64_t bucket, int rank) const {
  // All earlier buckets have the full size, so their shards have the size of bucket 0's shard.
  return bucket == 0 ? 0 : bucket * Shard(0, rank).size();
}

std::vector<FlatRange> ZeroShardPlan::LocalRanges(const FlatRange& range, int rank) const {
  std::vector<FlatRange> found;
  for (int64_t bucket = range.begin / bucket_;
       bucket < buckets() && Bucket(bucket).begin < range.end; ++bucket) {
    const FlatRange shard = Shard(bucket, rank);
    const int64_t from = std::max(shard.begin, range.begin), to = std::min(shard.end, range.end);
    if (from >= to) continue;
    const int64_t local = LocalOffset(bucket, rank) + from - shard.begin;
    found.push_back({local, local + to - from});
  }
  return found;
}

int64_t ZeroShardPlan::LocalSize(int rank) const {
  if (flat_size_ == 0) return 0;
  const int64_t last = buckets() - 1;
  return LocalOffset(last, rank) + Shard(last, rank).size();
}

}  // namespace tritonrl
