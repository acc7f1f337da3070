// Buckets through host memory, by MPI: what ranks without GPUs of their own use.
#ifndef TRITONRL_PARALLEL_MPI_BUCKETS_H_
#define TRITONRL_PARALLEL_MPI_BUCKETS_H_

#include <mpi.h>

#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "parallel/bucket_exchange.h"
#include "parallel/piece_exchange.h"

namespace tritonrl {

// Each operation is done when its call returns. `timeout` is the deadline of each.
class MpiBuckets : public BucketExchange {
 public:
  // `comm`, in which this process is number `rank` of `size`, must outlive this object.
  MpiBuckets(MPI_Comm comm, int rank, int size, absl::Duration timeout)
      : comm_(comm), rank_(rank), size_(size), timeout_(timeout) {}

  // Sums and gathers go this way from now on; null: in one operation of all ranks.
  void UseLevels(std::unique_ptr<PieceExchange> levels) { levels_ = std::move(levels); }

  absl::Status Reduce(const ShardPlan& plan, int64_t bucket, const at::Tensor& full,
                      const at::Tensor& local, bool add) override;
  absl::Status AwaitReduce(int64_t bucket) override { return absl::OkStatus(); }
  absl::Status Gather(const ShardPlan& plan, int64_t bucket, const at::Tensor& full) override;
  absl::Status Broadcast(const at::Tensor& part, int root) override;
  absl::Status Finish(const char* what) override { return absl::OkStatus(); }

 private:
  const MPI_Comm comm_;
  const int rank_, size_;
  const absl::Duration timeout_;
  std::unique_ptr<PieceExchange> levels_;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_MPI_BUCKETS_H_
