// Operations on pieces between GPUs, over NCCL.
#ifndef TRITONRL_PARALLEL_GPU_PIECES_H_
#define TRITONRL_PARALLEL_GPU_PIECES_H_

#include <c10/cuda/CUDAStream.h>

#include <string>

#include "parallel/gpu_communicator.h"
#include "parallel/piece_exchange.h"

namespace tritonrl {

class GpuPieces : public PieceExchange {
 public:
  // `group` must outlive this object, and nobody else uses it at the same time. `where`
  // (" between nodes") names it in errors. Operations are work of `stream`.
  GpuPieces(GpuCommunicator* group, c10::cuda::CUDAStream stream, const std::string& where = "")
      : group_(group),
        stream_(stream),
        sum_("the sum of gradients" + where),
        gather_("the exchange of weights" + where) {}

  absl::Status ReduceScatter(const at::Tensor& send, const at::Tensor& receive) override;
  absl::Status AllGather(const at::Tensor& send, const at::Tensor& receive) override;

 private:
  GpuCommunicator* const group_;
  const c10::cuda::CUDAStream stream_;
  const std::string sum_, gather_;  // names of the operations
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_GPU_PIECES_H_
