// Sums and gathers in two levels: within each node, and between the ranks with the same place on
// every node.
#ifndef TRITONRL_PARALLEL_TWO_LEVEL_PIECES_H_
#define TRITONRL_PARALLEL_TWO_LEVEL_PIECES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "parallel/node_grid.h"
#include "parallel/piece_exchange.h"

namespace tritonrl {

// With N nodes of L ranks. A sum of B bytes: pieces are put into the order of places (a copy of all
// of them), reduce-scattered within the node, so that each rank has its node's sums of the N pieces
// of its place, and these reduce-scattered between the nodes. A gather is the same backwards.
// A rank sends B (L - 1) / L bytes within its node and B (N - 1) / (N L) to other nodes, in L - 1
// and N - 1 steps where each level is a ring; in one ring of all ranks it sends B (NL - 1) / (NL)
// in NL - 1 steps, to whoever comes next, which for one rank of a node is on another. Nodes send
// each other no fewer bytes in this way: it is the steps that are fewer, and all ranks of a node
// send.
class TwoLevelPieces : public PieceExchange {
 public:
  // `node`: among the ranks of this rank's node by place. `peers`: among those of its place by
  // node. On GPUs both must use one stream, which is current when an operation is called.
  TwoLevelPieces(const NodeGrid& grid, std::unique_ptr<PieceExchange> node,
                 std::unique_ptr<PieceExchange> peers)
      : grid_(grid), node_(std::move(node)), peers_(std::move(peers)) {}

  absl::Status ReduceScatter(const at::Tensor& send, const at::Tensor& receive) override;
  absl::Status AllGather(const at::Tensor& send, const at::Tensor& receive) override;

  // Bytes that an operation on a bucket of so many takes beside it.
  static int64_t StagedBytes(const NodeGrid& grid, int64_t bucket_bytes) {
    return bucket_bytes + bucket_bytes / grid.ranks_per_node;
  }

 private:
  const NodeGrid grid_;
  const std::unique_ptr<PieceExchange> node_, peers_;
};

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_TWO_LEVEL_PIECES_H_
