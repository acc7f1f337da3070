#ifndef TRITONRL_PARALLEL_SHARD_PLAN_H_
#define TRITONRL_PARALLEL_SHARD_PLAN_H_

#include <cstdint>
#include <vector>

// Which rank keeps which part of the flat parameter buffers (model/weights/weights.h): the
// optimizer's state is sharded over the ranks, as in ZeRO (Rajbhandari et al., "ZeRO: memory
// optimizations toward training trillion parameter models", 2020).

namespace tritonrl {

// Elements [begin, end) of a flat buffer.
struct FlatRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

// The flat buffer is cut into buckets, each bucket into one shard for every rank, all of one size
// (a multiple of 64 elements) but the last ones of a bucket, which may be shorter or empty. A rank
// keeps its shards one behind the other.
class ShardPlan {
 public:
  // Elements of a bucket: 64 M, 256 MiB in fp32. Large enough that what a collective operation
  // costs once does not show, small enough that its copies do not either.
  static constexpr int64_t kBucketElements = int64_t{1} << 26;

  // All three at least 1 (flat_size may be 0).
  ShardPlan(int64_t flat_size, int ranks, int64_t bucket_elements = kBucketElements);

  int64_t flat_size() const { return flat_size_; }
  int ranks() const { return ranks_; }
  int64_t bucket_elements() const { return bucket_; }

  int64_t buckets() const;
  FlatRange Bucket(int64_t bucket) const;
  // What `rank` keeps of a bucket.
  FlatRange Shard(int64_t bucket, int rank) const;

  // Elements that a rank keeps, and where those of a bucket begin among them.
  int64_t LocalSize(int rank) const;
  int64_t LocalOffset(int64_t bucket, int rank) const;
  // Where among what a rank keeps the elements of a range lie that it keeps: in rising order, one
  // for each bucket that has any.
  std::vector<FlatRange> LocalRanges(const FlatRange& range, int rank) const;

 private:
  int64_t ShardSize(const FlatRange& bucket) const;

  int64_t flat_size_;
  int ranks_;
  int64_t bucket_;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_SHARD_PLAN_H_
