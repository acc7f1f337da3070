// Sums and gathers of buckets (bucket_exchange.h) by operations on pieces of one size.
#ifndef TRITONRL_PARALLEL_PADDED_BUCKETS_H_
#define TRITONRL_PARALLEL_PADDED_BUCKETS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/status/status.h"
#include "parallel/piece_exchange.h"
#include "parallel/shard_plan.h"

namespace tritonrl {

// BucketExchange::Reduce and Gather on rank `rank`. Buckets of which all pieces are as large are
// used where they are; of others the last pieces are filled up with zeros in a copy.
absl::Status ReducePadded(const ShardPlan& plan, int64_t bucket, int rank, const at::Tensor& full,
                          const at::Tensor& local, bool add, PieceExchange* pieces);
absl::Status GatherPadded(const ShardPlan& plan, int64_t bucket, int rank, const at::Tensor& full,
                          PieceExchange* pieces);

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_PADDED_BUCKETS_H_
