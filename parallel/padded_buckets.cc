#include "parallel/padded_buckets.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "base/status.h"

namespace tritonrl {

absl::Status ReducePadded(const ShardPlan& plan, int64_t bucket, int rank, const at::Tensor& full,
                          const at::Tensor& local, bool add, PieceExchange* pieces) {
  const FlatRange range = plan.Bucket(bucket), mine = plan.Piece(bucket, rank);
  const int64_t count = plan.Piece(bucket, 0).size();
  const at::Tensor place = local.narrow(0, plan.LocalOffset(bucket, rank), mine.size());
  at::Tensor send = full.narrow(0, range.begin, range.size()), receive = place;
  const bool equal = range.size() == count * plan.ranks();
  if (!equal) {
    send = at::zeros({count * plan.ranks()}, full.options());
    send.narrow(0, 0, range.size()).copy_(full.narrow(0, range.begin, range.size()));
  }
  const bool staged = add || !equal;
  if (staged) receive = at::empty({count}, local.options());
  RETURN_IF_ERROR(pieces->ReduceScatter(send, receive));
  if (add) {
    place.add_(receive.narrow(0, 0, mine.size()));
  } else if (staged) {
    place.copy_(receive.narrow(0, 0, mine.size()));
  }
  return absl::OkStatus();
}

absl::Status GatherPadded(const ShardPlan& plan, int64_t bucket, int rank, const at::Tensor& full,
                          PieceExchange* pieces) {
  const FlatRange range = plan.Bucket(bucket), mine = plan.Piece(bucket, rank);
  const int64_t count = plan.Piece(bucket, 0).size();
  const at::Tensor place = full.narrow(0, range.begin, range.size());
  at::Tensor send = full.narrow(0, mine.begin, mine.size()), receive = place;
  const bool equal = range.size() == count * plan.ranks();
  if (!equal) {
    send = at::zeros({count}, full.options());
    send.narrow(0, 0, mine.size()).copy_(full.narrow(0, mine.begin, mine.size()));
    receive = at::zeros({count * plan.ranks()}, full.options());
  }
  RETURN_IF_ERROR(pieces->AllGather(send, receive));
  if (!equal) place.copy_(receive.narrow(0, 0, range.size()));
  return absl::OkStatus();
}

}  // namespace tritonrl
