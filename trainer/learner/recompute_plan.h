// Chooses the activations that a training step recomputes to fit the device's memory.
#ifndef TRITONRL_TRAINER_LEARNER_RECOMPUTE_PLAN_H_
#define TRITONRL_TRAINER_LEARNER_RECOMPUTE_PLAN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "parallel/process_group.h"
#include "trainer/learner/policy.h"

namespace tritonrl {

struct RecomputePlanRequest {
  int64_t micro_batch_tokens = 0;
  int64_t max_sequence_tokens = 0;  // a sequence above micro_batch_tokens is a micro-batch alone
  double memory_gib = 0;            // for all tensors of training; 0: see PlanRecompute
  int zero_stage = 1;               // as in OptimizerConfig
};

// Bytes of gradients and optimizer state on this rank's device, sharded as `zero_stage` says
// (OptimizerConfig). Computed from shapes, not measured.
int64_t TrainingStateBytes(int zero_stage, const Policy& policy, const ProcessGroup& ranks);

// Sets the recompute plan of the policy's transformer: the plan with the least recomputation that
// fits into memory_gib or, if that is 0, into the free memory of the GPU (no limit on a CPU). All
// ranks call it together, after all permanent allocations on the device except the optimizer and
// the gradients; an engine's KV cache counts as allocated unless it sleeps during learning. Returns
// the plan as text; "" without a limit. ResourceExhausted, with the numbers, if no plan fits on
// some rank.
absl::StatusOr<std::string> PlanRecompute(const RecomputePlanRequest& request, const Policy& policy,
                                          ProcessGroup* ranks);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_LEARNER_RECOMPUTE_PLAN_H_
