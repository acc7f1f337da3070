// Sums between GPUs over NCCL, on the current stream.
#ifndef TRITONRL_PARALLEL_GPU_RANK_SUM_H_
#define TRITONRL_PARALLEL_GPU_RANK_SUM_H_

#include <functional>
#include <memory>
#include <utility>

#include "parallel/gpu_communicator.h"
#include "parallel/rank_sum.h"

namespace tritonrl {

class GpuRankSum : public RankSum {
 public:
  // On a communicator that nobody else uses.
  explicit GpuRankSum(std::unique_ptr<GpuCommunicator> group) : group_(std::move(group)) {}

  int size() const override { return group_->me().size; }
  absl::Status Sum(const at::Tensor& x) override;
  absl::Status Share(const at::Tensor& x) override;
  absl::Status Await(absl::FunctionRef<bool()> done, const char* what) override;
  void set_before_end(std::function<void()> before_end) override {
    group_->set_before_abort(std::move(before_end));
  }

 private:
  const std::unique_ptr<GpuCommunicator> group_;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_GPU_RANK_SUM_H_
