// Gathers all shards of a flat buffer, for tests.
#ifndef TRITONRL_PARALLEL_TESTING_ALL_GATHER_SHARDS_H_
#define TRITONRL_PARALLEL_TESTING_ALL_GATHER_SHARDS_H_

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "base/status.h"
#include "parallel/process_group.h"

namespace tritonrl {

// Copies the shards `local` ([plan.LocalSize(rank)]) of all ranks to `full` ([flat_size], of the
// same type) on every rank.
inline absl::Status AllGatherShards(const ZeroShardPlan& plan, const at::Tensor& local,
                                    const at::Tensor& full, ProcessGroup* ranks) {
  for (int64_t bucket = 0; bucket < plan.buckets(); ++bucket) {
    const FlatRange shard = plan.Shard(bucket, ranks->rank());
    full.narrow(0, shard.begin, shard.size())
        .copy_(local.narrow(0, plan.LocalOffset(bucket, ranks->rank()), shard.size()));
    if (ranks->size() > 1) RETURN_IF_ERROR(ranks->collectives()->AllGather(plan, bucket, full));
  }
  return ranks->size() > 1 ? ranks->collectives()->Wait("the shard all-gather") : absl::OkStatus();
}

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_TESTING_ALL_GATHER_SHARDS_H_
