#include "parallel/node_grid.h"

#include <set>

#include "absl/strings/str_cat.h"

namespace tritonrl {

int CountNodes(const std::vector<int>& node_of_rank) {
  return static_cast<int>(std::set<int>(node_of_rank.begin(), node_of_rank.end()).size());
}

absl::StatusOr<NodeGrid> GridOf(const std::vector<int>& node_of_rank) {
  const int nodes = CountNodes(node_of_rank);
  if (node_of_rank.size() < 2) return absl::FailedPreconditionError("there is only one rank");
  if (nodes == 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("all ", node_of_rank.size(), " ranks are on one node"));
  }
  std::vector<int> runs;  // lengths of runs of ranks on one node
  for (size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    if (rank == 0 || node_of_rank[rank] != node_of_rank[rank - 1]) runs.push_back(0);
    ++runs.back();
  }
  if (static_cast<int>(runs.size()) != nodes) {
    return absl::FailedPreconditionError(
        "ranks are not numbered one node behind the other (mpirun --map-by slot, srun "
        "--distribution=block)");
  }
  for (size_t node = 1; node < runs.size(); ++node) {
    if (runs[node] == runs[0]) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the first node has ", runs[0], runs[0] == 1 ? " rank" : " ranks",
                     " and node number ", node + 1, " has ", runs[node]));
  }
  if (runs[0] == 1) {
    return absl::FailedPreconditionError(absl::StrCat("each of ", nodes, " nodes has one rank"));
  }
  return NodeGrid{.nodes = nodes, .ranks_per_node = runs[0]};
}

}  // namespace tritonrl
