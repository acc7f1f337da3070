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
#include "parallel/mpi_collectives.h"
#include "parallel/nccl_communicator.h"
#include "parallel/shard_plan.h"

// Collectives between GPUs over NCCL. A rank that died or hangs ends an operation with a message,
// though its kernel would wait for ever.

namespace tritonrl {

// Tensors on the communicator's GPU travel over NCCL, those in CPU memory and messages over MPI.
class NcclCollectives : public MpiCollectives {
 public:
  enum class Ordering {
    // Collectives run on a stream of their own and overlap what the current stream gets later.
    // Needs a non-blocking communicator.
    kOwnStream,
    // Collectives are work of the current stream like any other and may be captured in a CUDA
    // graph, if every rank captures them. Needs a blocking communicator.
    kCurrentStream,
  };

  // `communicator` has no other user. `comm`, which has the same ranks, outlives this object.
  NcclCollectives(std::unique_ptr<NcclCommunicator> communicator, Ordering ordering, MPI_Comm comm);

  absl::Status AllReduce(const at::Tensor& x) override;
  absl::Status ReduceScatter(const ShardPlan& plan, int64_t bucket, const at::Tensor& full,
                             const at::Tensor& local, bool accumulate) override;
  absl::Status WaitUntilRead(int64_t bucket) override;
  absl::Status AllGather(const ShardPlan& plan, int64_t bucket, const at::Tensor& full) override;
  absl::Status Broadcast(const at::Tensor& x, int root) override;
  absl::Status Wait(const char* what) override;
  absl::Status Await(absl::FunctionRef<bool()> done, const char* what) override;
  void set_before_abort(std::function<void()> before_abort) override {
    communicator_->set_before_abort(std::move(before_abort));
  }

 private:
  // The stream of the next collective. It waits for the current stream if it is another one.
  absl::StatusOr<c10::cuda::CUDAStream> NextStream();
  // Error unless x is contiguous and on the communicator's GPU.
  absl::Status CheckTensor(const at::Tensor& x) const;
  absl::Status Check(ncclResult_t code, const char* what);

  const std::unique_ptr<NcclCommunicator> communicator_;
  const Ordering ordering_;
  const at::Device device_;
  const c10::cuda::CUDAStream own_stream_;
  // Of each bucket: recorded behind its last reduce-scatter.
  std::unordered_map<int64_t, at::cuda::CUDAEvent> reduced_;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_NCCL_COLLECTIVES_H_
