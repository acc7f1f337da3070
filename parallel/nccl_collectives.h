#ifndef TRITONRL_PARALLEL_NCCL_COLLECTIVES_H_
#define TRITONRL_PARALLEL_NCCL_COLLECTIVES_H_

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>

#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "parallel/collectives.h"
#include "parallel/nccl_communicator.h"
#include "parallel/shard_plan.h"

// Sums, exchanges and broadcasts between the GPUs of the ranks of a job, over NCCL. Every operation
// has a deadline: a rank that died or hangs ends it with a message, though its kernel would wait
// for ever.
//
// Sums between GPUs over NCCL, on the current stream.

namespace tritonrl {

// Operations run on a stream of their own, beside what the current stream is given afterwards.
class NcclShardCollectives : public ShardCollectives {
 public:
  // On a communicator that nobody else uses.
  explicit NcclShardCollectives(std::unique_ptr<NcclCommunicator> group);

  // With tensors on the device. After an error no other operation can succeed.
  absl::Status ReduceScatter(const ShardPlan& plan, int64_t bucket, const at::Tensor& full,
                             const at::Tensor& local, bool add) override;
  absl::Status AwaitReduceScatter(int64_t bucket) override;
  absl::Status AllGather(const ShardPlan& plan, int64_t bucket, const at::Tensor& full) override;
  absl::Status Broadcast(const at::Tensor& part, int root) override;
  absl::Status Finish(const char* what) override;

 private:
  // The stream of the operations goes on where the current one is now.
  absl::Status WaitForCurrentStream();
  // Until the stream of the operations has reached the event.
  absl::Status Await(const at::cuda::CUDAEvent& event, const char* what);

  const std::unique_ptr<NcclCommunicator> group_;
  const int rank_, size_;
  const at::Device device_;
  const c10::cuda::CUDAStream stream_;
  // Of each bucket: behind the sum that was begun last.
  std::unordered_map<int64_t, at::cuda::CUDAEvent> reduced_;
};

class NcclStreamCollectives : public StreamCollectives {
 public:
  // On a communicator that nobody else uses.
  explicit NcclStreamCollectives(std::unique_ptr<NcclCommunicator> group)
      : group_(std::move(group)) {}

  int size() const override { return group_->me().size; }
  absl::Status AllReduce(const at::Tensor& x) override;
  absl::Status Broadcast(const at::Tensor& x) override;
  absl::Status Await(absl::FunctionRef<bool()> done, const char* what) override;
  void set_before_abort(std::function<void()> before_end) override {
    group_->set_before_abort(std::move(before_end));
  }

 private:
  const std::unique_ptr<NcclCommunicator> group_;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_NCCL_COLLECTIVES_H_
