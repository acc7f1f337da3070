#ifndef TRITONRL_PARALLEL_ZERO_SHARD_PLAN_H_
#define TRITONRL_PARALLEL_ZERO_SHARD_PLAN_H_

#include <cstdint>
#include <vector>

// Assigns the parts of the flat parameter buffers (model/weights/weights.h) to ranks, to shard the
// optimizer's state as in ZeRO (Rajbhandari et al., "ZeRO: memory optimizations toward training
// trillion parameter models", 2020).

namespace tritonrl {

// Elements [begin, end) of a flat buffer.
struct FlatRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

// The division of a flat buffer into buckets, and of each bucket into one shard per rank. The
// shards of a bucket have the same size, a multiple of 64 elements; the last ones may be shorter or
// empty. A rank stores its shards contiguously.
class ZeroShardPlan {
 public:
  // Elements per bucket: 64 M, which are 256 MiB in fp32. At this size the latency of a collective
  // is small compared with its transfer, and copies of a bucket are small compared with the model.
  static constexpr int64_t kBucketElements = int64_t{1} << 26;

  // flat_size >= 0, ranks >= 1, bucket_elements >= 1.
  ZeroShardPlan(int64_t flat_size, int ranks, int64_t bucket_elements = kBucketElements);

  int64_t flat_size() const { return flat_size_; }
  int ranks() const { return ranks_; }
  int64_t bucket_elements() const { return bucket_; }

  int64_t buckets() const;
  FlatRange Bucket(int64_t bucket) const;
  // The elements of a bucket that `rank` stores.
  FlatRange Shard(int64_t bucket, int rank) const;

  // The number of elements that a rank stores, and the offset of a bucket's shard among them.
  int64_t LocalSize(int rank) const;
  int64_t LocalOffset(int64_t bucket, int rank) const;
  // Returns the part of `range` that a rank stores, as ranges of the rank's own elements, in
  // ascending order, one per bucket with elements of `range`.
  std::vector<FlatRange> LocalRanges(const FlatRange& range, int rank) const;

 private:
  int64_t ShardSize(const FlatRange& bucket) const;

  int64_t flat_size_;
  int ranks_;
  int64_t bucket_;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_ZERO_SHARD_PLAN_H_
