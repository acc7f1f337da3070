#include "parallel/mpi_rank_sum.h"

#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "parallel/mpi_wait.h"

namespace tritonrl {

MpiRankSum::~MpiRankSum() {
  // An operation that was given up may still write there.
  if (lost_) (void)std::make_unique<std::vector<uint8_t>>(std::move(room_)).release();
}

absl::Status MpiRankSum::Finish(const std::function<int(MPI_Request*)>& start, const char* what) {
  if (lost_) return absl::UnavailableError("the other ranks were lost before");
  const absl::Status status = AwaitMpi(
      start, what, rank_, timeout_, static_cast<int64_t>(room_.size()), [this] { return News(); });
  lost_ = !status.ok();
  return status;
}

absl::Status MpiRankSum::Sum(const at::Tensor& x) {
  if (!x.is_cpu() || x.scalar_type() != at::kFloat || !x.is_contiguous()) {
    return absl::InternalError("sums through host memory are of contiguous fp32 tensors there");
  }
  const int64_t count = x.numel(), bytes = count * static_cast<int64_t>(sizeof(float));
  room_.resize(size_ * bytes);
  std::memcpy(room_.data() + rank_ * bytes, x.const_data_ptr(), bytes);
  RETURN_IF_ERROR(Finish(
      [&](MPI_Request* request) {
        return MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, room_.data(),
                              static_cast<int>(bytes), MPI_BYTE, comm_, request);
      },
      "a sum in the middle of a step"));
  // Every rank adds in the order of ranks, so that all have the same bits.
  float* sum = x.mutable_data_ptr<float>();
  std::memcpy(sum, room_.data(), bytes);
  for (int rank = 1; rank < size_; ++rank) {
    const auto* part = reinterpret_cast<const float*>(room_.data()) + rank * count;
    for (int64_t i = 0; i < count; ++i) sum[i] += part[i];
  }
  return absl::OkStatus();
}

absl::Status MpiRankSum::Share(const at::Tensor& x) {
  if (!x.is_cpu() || !x.is_contiguous()) {
    return absl::InternalError("what is shared through host memory is contiguous there");
  }
  room_.resize(x.nbytes());
  std::memcpy(room_.data(), x.const_data_ptr(), room_.size());
  RETURN_IF_ERROR(Finish(
      [&](MPI_Request* request) {
        return MPI_Ibcast(room_.data(), static_cast<int>(room_.size()), MPI_BYTE, 0, comm_,
                          request);
      },
      "the end of a step"));
  std::memcpy(x.mutable_data_ptr(), room_.data(), room_.size());
  return absl::OkStatus();
}

absl::Status MpiRankSum::Await(absl::FunctionRef<bool()> done, const char* what) {
  return done() ? absl::OkStatus()
                : absl::InternalError(absl::StrCat(what, ": ranks on a CPU wait for no GPU"));
}

}  // namespace tritonrl
