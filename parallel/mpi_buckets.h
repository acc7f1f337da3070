// Buckets through host memory, by MPI: what ranks without GPUs of their own use.
#ifndef TRITONRL_PARALLEL_MPI_BUCKETS_H_
#define TRITONRL_PARALLEL_MPI_BUCKETS_H_

#include "absl/time/time.h"
#include "parallel/bucket_exchange.h"

namespace tritonrl {

// Each operation is done when its call returns. `timeout` is the deadline of each.
class MpiBuckets : public BucketExchange {
 public:
  MpiBuckets(int rank, int size, absl::Duration timeout)
      : rank_(rank), size_(size), timeout_(timeout) {}

  absl::Status Reduce(const ShardPlan& plan, int64_t bucket, const at::Tensor& full,
                      const at::Tensor& local, bool add) override;
  absl::Status AwaitReduce(int64_t bucket) override { return absl::OkStatus(); }
  absl::Status Gather(const ShardPlan& plan, int64_t bucket, const at::Tensor& full) override;
  absl::Status Finish(const char* what) override { return absl::OkStatus(); }

 private:
  const int rank_, size_;
  const absl::Duration timeout_;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_MPI_BUCKETS_H_
