#include "parallel/two_level_pieces.h"

#include <ATen/ops/empty.h>

#include "base/status.h"

namespace tritonrl {

absl::Status TwoLevelPieces::ReduceScatter(const at::Tensor& send, const at::Tensor& receive) {
  const int64_t count = receive.numel(), nodes = grid_.nodes, places = grid_.ranks_per_node;
  const at::Tensor by_place = send.view({nodes, places, count}).transpose(0, 1).contiguous();
  const at::Tensor sums_of_node = at::empty({nodes * count}, send.options());
  RETURN_IF_ERROR(node_->ReduceScatter(by_place.view({-1}), sums_of_node));
  return peers_->ReduceScatter(sums_of_node, receive);
}

absl::Status TwoLevelPieces::AllGather(const at::Tensor& send, const at::Tensor& receive) {
  const int64_t count = send.numel(), nodes = grid_.nodes, places = grid_.ranks_per_node;
  const at::Tensor of_place = at::empty({nodes * count}, send.options());
  RETURN_IF_ERROR(peers_->AllGather(send, of_place));
  const at::Tensor by_place = at::empty({places, nodes, count}, send.options());
  RETURN_IF_ERROR(node_->AllGather(of_place, by_place.view({-1})));
  receive.view({nodes, places, count}).copy_(by_place.transpose(0, 1));
  return absl::OkStatus();
}

}  // namespace tritonrl
