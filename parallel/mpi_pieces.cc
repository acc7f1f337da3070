#include "parallel/mpi_pieces.h"

#include <ATen/ops/empty.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "parallel/mpi_wait.h"

namespace tritonrl {
namespace {

// Memory of the host that stands for the tensor: its own if it lies there.
at::Tensor OnHost(const at::Tensor& x) {
  return x.is_cpu() ? x : at::empty(x.sizes(), x.options().device(at::kCPU));
}

}  // namespace

absl::Status MpiPieces::ReduceScatter(const at::Tensor& send, const at::Tensor& receive) {
  const at::Tensor all = send.cpu(), mine = OnHost(receive);
  RETURN_IF_ERROR(AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Ireduce_scatter_block(all.const_data_ptr(), mine.mutable_data_ptr(),
                                         static_cast<int>(mine.numel()), MPI_FLOAT, MPI_SUM, comm_,
                                         request);
      },
      absl::StrCat("the sum of gradients", where_), rank_, timeout_,
      static_cast<int64_t>(all.nbytes())));
  if (!receive.is_cpu()) receive.copy_(mine);
  return absl::OkStatus();
}

absl::Status MpiPieces::AllGather(const at::Tensor& send, const at::Tensor& receive) {
  // MPI wants the two apart.
  const at::Tensor mine = send.to(at::kCPU, /*non_blocking=*/false, /*copy=*/true);
  const at::Tensor all = OnHost(receive);
  const int bytes = static_cast<int>(mine.nbytes());
  RETURN_IF_ERROR(AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Iallgather(mine.const_data_ptr(), bytes, MPI_BYTE, all.mutable_data_ptr(), bytes,
                              MPI_BYTE, comm_, request);
      },
      absl::StrCat("the exchange of weights", where_), rank_, timeout_,
      static_cast<int64_t>(all.nbytes())));
  if (!receive.is_cpu()) receive.copy_(all);
  return absl::OkStatus();
}

}  // namespace tritonrl
