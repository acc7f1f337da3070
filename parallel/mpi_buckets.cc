#include "parallel/mpi_buckets.h"

#include <ATen/ops/empty.h>

#include <vector>

#include "base/status.h"
#include "parallel/mpi_wait.h"
#include "parallel/padded_buckets.h"

namespace tritonrl {

absl::Status MpiBuckets::Reduce(const ShardPlan& plan, int64_t bucket, const at::Tensor& full,
                                const at::Tensor& local, bool add) {
  if (levels_ != nullptr) {
    return ReducePadded(plan, bucket, rank_, full, local, add, levels_.get());
  }
  const FlatRange range = plan.Bucket(bucket);
  std::vector<int> counts(size_);
  for (int r = 0; r < size_; ++r) counts[r] = static_cast<int>(plan.Piece(bucket, r).size());
  const at::Tensor all = full.narrow(0, range.begin, range.size()).cpu();
  const at::Tensor mine = at::empty({counts[rank_]}, at::kFloat);
  RETURN_IF_ERROR(AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Ireduce_scatter(all.const_data_ptr(), mine.mutable_data_ptr(), counts.data(),
                                   MPI_FLOAT, MPI_SUM, comm_, request);
      },
      "the sum of gradients", rank_, timeout_, static_cast<int64_t>(all.nbytes())));
  const at::Tensor place = local.narrow(0, plan.LocalOffset(bucket, rank_), counts[rank_]);
  if (add) {
    place.add_(mine.to(place.device()));
  } else {
    place.copy_(mine);
  }
  return absl::OkStatus();
}

absl::Status MpiBuckets::Gather(const ShardPlan& plan, int64_t bucket, const at::Tensor& full) {
  if (levels_ != nullptr) return GatherPadded(plan, bucket, rank_, full, levels_.get());
  const int64_t width = static_cast<int64_t>(full.element_size());
  const FlatRange range = plan.Bucket(bucket);
  std::vector<int> counts(size_), offsets(size_);  // in bytes
  for (int r = 0; r < size_; ++r) {
    const FlatRange piece = plan.Piece(bucket, r);
    counts[r] = static_cast<int>(piece.size() * width);
    offsets[r] = static_cast<int>((piece.begin - range.begin) * width);
  }
  const at::Tensor part = full.narrow(0, range.begin, range.size());
  const at::Tensor all = part.cpu();  // the same memory where it is the host's
  RETURN_IF_ERROR(AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all.mutable_data_ptr(),
                               counts.data(), offsets.data(), MPI_BYTE, comm_, request);
      },
      "the exchange of weights", rank_, timeout_, static_cast<int64_t>(all.nbytes())));
  if (!part.is_cpu()) part.copy_(all);
  return absl::OkStatus();
}

absl::Status MpiBuckets::Broadcast(const at::Tensor& part, int root) {
  const at::Tensor all = part.cpu();  // the same memory where it is the host's
  RETURN_IF_ERROR(AwaitMpi(
      [&](MPI_Request* request) {
        return MPI_Ibcast(all.mutable_data_ptr(), static_cast<int>(all.nbytes()), MPI_BYTE, root,
                          comm_, request);
      },
      "the broadcast of weights", rank_, timeout_, static_cast<int64_t>(all.nbytes())));
  if (!part.is_cpu() && rank_ != root) part.copy_(all);
  return absl::OkStatus();
}

}  // namespace tritonrl
