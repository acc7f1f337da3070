// Where the ranks of a job are, for sums and exchanges that go in two levels: within each node, and
// between nodes.
#ifndef TRITONRL_PARALLEL_NODE_GRID_H_
#define TRITONRL_PARALLEL_NODE_GRID_H_

#include <vector>

#include "absl/status/statusor.h"

namespace tritonrl {

// Nodes with as many ranks each, numbered one node behind the other: place l of node n is rank
// n * ranks_per_node + l.
struct NodeGrid {
  int nodes = 1;
  int ranks_per_node = 1;
  bool operator==(const NodeGrid&) const = default;
};

// The grid of ranks of which each is on the node with this number (any numbers that tell nodes
// apart), if there are two levels: at least two nodes with at least two ranks each.
// FailedPrecondition otherwise; its message is a clause that says why.
absl::StatusOr<NodeGrid> GridOf(const std::vector<int>& node_of_rank);

// How many nodes these are.
int CountNodes(const std::vector<int>& node_of_rank);

}  // namespace tritonrl

#endif  // TRITONRL_PARALLEL_NODE_GRID_H_
