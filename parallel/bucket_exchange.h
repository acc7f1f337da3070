// Buckets of flat buffers (shard_plan.h) between the ranks of a job: summed into what each keeps,
// gathered from it, and sent from one rank to all others.
#ifndef TRITONRL_PARALLEL_BUCKET_EXCHANGE_H_
#define TRITONRL_PARALLEL_BUCKET_EXCHANGE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/status/status.h"
#include "parallel/shard_plan.h"

namespace tritonrl {

// Used by one thread; all ranks begin the same operations in the same order. An operation may
// still be under way when its call returns: it follows what the current stream has been given
// until then, and its tensors are left alone until Finish.
class BucketExchange {
 public:
  virtual ~BucketExchange() = default;

  // The sum over all ranks of a bucket of `full` ([flat_size] fp32); this rank's piece of it goes
  // to its place in `local` ([LocalSize(rank)] fp32), or with `add` is added to what lies there.
  virtual absl::Status Reduce(const ShardPlan& plan, int64_t bucket, const at::Tensor& full,
                              const at::Tensor& local, bool add) = 0;
  // Until the bucket's sum that was begun last, and all begun before it, have read `full`: what
  // they have read may then be overwritten. The host waits, as it can give up after the deadline: a
  // stream that waited for a rank that is gone could never be waited for again.
  virtual absl::Status AwaitReduce(int64_t bucket) = 0;
  // Each rank's own piece of a bucket of `full` ([flat_size], of any type) to all the others, in
  // place.
  virtual absl::Status Gather(const ShardPlan& plan, int64_t bucket, const at::Tensor& full) = 0;
  // Rank `root`'s elements of `part` (contiguous, of any type, below 2 GiB) to all the others, in
  // place.
  virtual absl::Status Broadcast(const at::Tensor& part, int root) = 0;
  // Until all that was begun is done; the current stream sees it. `what` names it in an error.
  virtual absl::Status Finish(const char* what) = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_BUCKET_EXCHANGE_H_
