#include "parallel/gpu_pieces.h"

#include "base/status.h"

namespace tritonrl {

absl::Status GpuPieces::ReduceScatter(const at::Tensor& send, const at::Tensor& receive) {
  RETURN_IF_ERROR(group_->Alive());
  return group_->Check(
      ncclReduceScatter(send.const_data_ptr(), receive.mutable_data_ptr(), receive.numel(),
                        NcclType(send), ncclSum, group_->get(), stream_.stream()),
      sum_.c_str());
}

absl::Status GpuPieces::AllGather(const at::Tensor& send, const at::Tensor& receive) {
  RETURN_IF_ERROR(group_->Alive());
  return group_->Check(ncclAllGather(send.const_data_ptr(), receive.mutable_data_ptr(),
                                     send.nbytes(), ncclUint8, group_->get(), stream_.stream()),
                       gather_.c_str());
}

}  // namespace tritonrl
