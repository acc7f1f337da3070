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
#include "parallel/zero_shard_plan.h"

// Collectives between GPUs over NCCL, with deadlines: if a rank died or hangs, an operation ends
// with an error, although NCCL's kernel alone would wait forever.

namespace tritonrl {

// The implementation for ranks with a GPU each. Tensors on the communicator's GPU use NCCL; tensors
// in CPU memory and messages use MPI.
class NcclCollectives : public MpiCollectives {
 public:
  enum class Ordering {
    // Collectives run on a separate stream and overlap with later work of the current stream.
    // Needs a non-blocking communicator.
    kOwnStream,
    // Collectives run on the current stream and may be captured in a CUDA graph if every rank
    // captures them. Needs a blocking communicator.
    kCurrentStream,
  };

  // `comm` has the same ranks as `communicator` and must outlive this object.
  NcclCollectives(std::unique_ptr<NcclCommunicator> communicator, Ordering ordering, MPI_Comm comm);

  absl::Status AllReduce(const at::Tensor& x) override;
  absl::Status ReduceScatter(const ZeroShardPlan& plan, int64_t bucket, const at::Tensor& full,
                             const at::Tensor& local, bool accumulate) override;
  absl::Status WaitUntilRead(int64_t bucket) override;
  absl::Status AllGather(const ZeroShardPlan& plan, int64_t bucket,
                         const at::Tensor& full) override;
  absl::Status Broadcast(const at::Tensor& x, int root) override;
  absl::Status Wait(const char* what) override;
  absl::Status Await(absl::FunctionRef<bool()> done, const char* what) override;
  void set_before_abort(std::function<void()> before_abort) override {
    communicator_->set_before_abort(std::move(before_abort));
  }

 private:
  // Returns the stream of the next collective. If it is not the current stream, it waits for the
  // current stream first.
  absl::StatusOr<c10::cuda::CUDAStream> NextStream();
  // Returns an error unless x is contiguous and on the communicator's GPU.
  absl::Status CheckTensor(const at::Tensor& x) const;
  absl::Status Check(ncclResult_t code, const char* what);

  const std::unique_ptr<NcclCommunicator> communicator_;
  const Ordering ordering_;
  const at::Device device_;
  const c10::cuda::CUDAStream own_stream_;
  // For each bucket, an event recorded after its last reduce-scatter.
  std::unordered_map<int64_t, at::cuda::CUDAEvent> reduced_;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_NCCL_COLLECTIVES_H_
