// Sums through host memory, by MPI: for ranks on a CPU.
#ifndef TRITONRL_PARALLEL_MPI_RANK_SUM_H_
#define TRITONRL_PARALLEL_MPI_RANK_SUM_H_

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/time/time.h"
#include "parallel/rank_sum.h"

namespace tritonrl {

// Each operation is done when its call returns. `timeout` is the deadline of each.
class MpiRankSum : public RankSum {
 public:
  // `comm`, in which this process is number `rank` of `size`, must outlive this object.
  MpiRankSum(MPI_Comm comm, int rank, int size, absl::Duration timeout)
      : comm_(comm), rank_(rank), size_(size), timeout_(timeout) {}
  ~MpiRankSum() override;

  int size() const override { return size_; }
  absl::Status Sum(const at::Tensor& x) override;
  absl::Status Share(const at::Tensor& x) override;
  absl::Status Await(absl::FunctionRef<bool()> done, const char* what) override;

 private:
  // Waits for what `start` begins in room_.
  absl::Status Finish(const std::function<int(MPI_Request*)>& start, const char* what);

  const MPI_Comm comm_;
  const int rank_, size_;
  const absl::Duration timeout_;
  std::vector<uint8_t> room_;  // what MPI reads and writes
  bool lost_ = false;          // it may go on doing so
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_MPI_RANK_SUM_H_
