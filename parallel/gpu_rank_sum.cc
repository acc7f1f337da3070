#include "parallel/gpu_rank_sum.h"

#include <c10/cuda/CUDAStream.h>

#include "base/status.h"

namespace tritonrl {
namespace {

constexpr absl::Duration kLongestPause =
    absl::Microseconds(50);  // of a step that takes milliseconds

cudaStream_t StreamOf(const at::Tensor& x) {
  return c10::cuda::getCurrentCUDAStream(x.device().index()).stream();
}

absl::Status CheckPlace(const at::Tensor& x, const GpuRank& me) {
  if (x.device() == me.device && x.is_contiguous()) return absl::OkStatus();
  return absl::InternalError("ranks sum and share contiguous tensors on the GPU they joined with");
}

}  // namespace

absl::Status GpuRankSum::Sum(const at::Tensor& x) {
  RETURN_IF_ERROR(group_->Alive());
  RETURN_IF_ERROR(CheckPlace(x, group_->me()));
  void* data = x.mutable_data_ptr();
  return group_->Check(
      ncclAllReduce(data, data, x.numel(), NcclType(x), ncclSum, group_->get(), StreamOf(x)),
      "a sum in the middle of a step");
}

absl::Status GpuRankSum::Share(const at::Tensor& x) {
  RETURN_IF_ERROR(group_->Alive());
  RETURN_IF_ERROR(CheckPlace(x, group_->me()));
  void* data = x.mutable_data_ptr();
  return group_->Check(
      ncclBroadcast(data, data, x.nbytes(), ncclUint8, 0, group_->get(), StreamOf(x)),
      "the end of a step");
}

absl::Status GpuRankSum::Await(absl::FunctionRef<bool()> done, const char* what) {
  return group_->Await(done, what, kLongestPause, [this] { return News(); });
}

}  // namespace tritonrl
