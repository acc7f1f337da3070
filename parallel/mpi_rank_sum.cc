#include "parallel/mpi_rank_sum.h"

#include <cstring>

#include "base/status.h"
#include "parallel/mpi_wait.h"

namespace tritonrl {

absl::Status MpiRankSum::Sum(const at::Tensor& x) {
  if (!x.is_cpu() || x.scalar_type() != at::kFloat || !x.is_contiguous()) {
    return absl::InternalError("sums through host memory are of contiguous fp32 tensors there");
  }
  const int64_t count = x.numel();
  all_.resize(size_ * count);
  // Buffers that MPI may still use when the deadline has passed are this object's own.
  std::memcpy(all_.data() + rank_ * count, x.const_data_ptr(), count * sizeof(float));
  RETURN_IF_ERROR(AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all_.data(),
                              static_cast<int>(count), MPI_FLOAT, comm_, request);
      },
      "a sum in the middle of a step", rank_, timeout_,
      static_cast<int64_t>(all_.size() * sizeof(float)), [this] { return News(); }));
  // Every rank adds in the order of ranks, so that all have the same bits.
  float* sum = x.mutable_data_ptr<float>();
  std::memcpy(sum, all_.data(), count * sizeof(float));
  for (int rank = 1; rank < size_; ++rank) {
    const float* part = all_.data() + rank * count;
    for (int64_t i = 0; i < count; ++i) sum[i] += part[i];
  }
  return absl::OkStatus();
}

absl::Status MpiRankSum::Share(const at::Tensor& x) {
  if (!x.is_cpu() || !x.is_contiguous()) {
    return absl::InternalError("what is shared through host memory is contiguous there");
  }
  return AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Ibcast(x.mutable_data_ptr(), static_cast<int>(x.nbytes()), MPI_BYTE, 0, comm_,
                          request);
      },
      "the end of a step", rank_, timeout_, static_cast<int64_t>(x.nbytes()),
      [this] { return News(); });
}

absl::Status MpiRankSum::Await(absl::FunctionRef<bool()> done, const char* what) {
  return done() ? absl::OkStatus()
                : absl::InternalError(absl::StrCat(what, ": ranks on a CPU wait for no GPU"));
}

}  // namespace tritonrl
