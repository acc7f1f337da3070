// Chooses which activations training steps recompute, so that they fit the device.
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
  int64_t max_sequence_tokens =
      0;                  // tokens; one that is longer than a micro-batch is one by itself
  double memory_gib = 0;  // for all tensors of training; 0: see PlanRecompute
  int zero_stage = 1;     // as in OptimizerConfig
};

// Bytes on this rank's device that training keeps from step to step beside the weights: gradients
// and the optimizer's state, shared as `zero_stage` says (OptimizerConfig). Computed, not asked.
int64_t TrainingStateBytes(int zero_stage, const Policy& policy, const ProcessGroup& ranks);

// Sets the recompute plan of the policy's transformer: the plan with the least recomputation that
// fits into memory_gib or, if that is 0, into the free memory of the GPU (a CPU then has no limit).
// All ranks call it together, when everything that stays on the device is allocated except the
// optimizer and the gradients; an engine's cache counts unless its memory is released for learning.
// Returns the plan in words; "" without a limit. ResourceExhausted, with the numbers, if no plan
// fits on some rank.
absl::StatusOr<std::string> PlanRecompute(const RecomputePlanRequest& request, const Policy& policy,
                                          ProcessGroup* ranks);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_LEARNER_RECOMPUTE_PLAN_H_
