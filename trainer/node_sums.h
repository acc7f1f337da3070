// How gradients are summed and weights gathered over several nodes: in one operation of all ranks
// or in two levels (parallel/two_level_pieces.h), as configured or as measured.
#ifndef TRITONRL_TRAINER_NODE_SUMS_H_
#define TRITONRL_TRAINER_NODE_SUMS_H_

#include <string>

#include "absl/status/statusor.h"
#include "model/weights.h"
#include "parallel/data_parallel.h"
#include "trainer/config.pb.h"

namespace tritonrl {

struct NodeSumsRequest {
  OptimizerConfig::NodeSums wanted = OptimizerConfig::MEASURED;
  bool deterministic = false;  // policy.deterministic: nothing may depend on the clock
  // File that a measured choice is kept in, and taken from while nodes and ranks are the same: both
  // ways round differently, and a run goes on to the bit. Only the first rank uses it. "": none.
  std::string record;
};

// Sets the way of `ranks` (null: alone) and says in a line what it is and why; "" where nobody
// would expect a choice. Called by all ranks that learn together, after they have joined their GPUs
// and before their steps are planned (step_plan.h). Measuring takes eight sums and exchanges of a
// bucket of the weights' size, at most 256 MiB, and its memory meanwhile. InvalidArgument: two
// levels are configured but cannot be, with the reason. DataLoss: a record that is damaged. Else
// what a lost rank, too little memory or a record that cannot be written gives.
absl::StatusOr<std::string> ChooseNodeSums(const NodeSumsRequest& request, const Weights& weights,
                                           DataParallel* ranks);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_NODE_SUMS_H_
