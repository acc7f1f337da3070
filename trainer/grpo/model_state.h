// Everything of a GRPO run that computes with the policy on this rank.
#ifndef TRITONRL_TRAINER_GRPO_MODEL_STATE_H_
#define TRITONRL_TRAINER_GRPO_MODEL_STATE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "rollout/engine/engine.h"
#include "trainer/config/config.pb.h"
#include "trainer/grpo/rank_placement.h"
#include "trainer/learner/learner.h"
#include "trainer/learner/log_probs.h"
#include "trainer/learner/policy.h"
#include "trainer/run/training_run.h"

namespace tritonrl {

struct ModelState {
  const Policy* policy = nullptr;
  RankPlacement* placement = nullptr;
  std::unique_ptr<ReferencePolicy> reference;  // null without KL penalty and where nothing learns
  std::unique_ptr<Engine> engine;              // null on a rank that only learns
  std::unique_ptr<Learner> learner;            // null on a rank that only generates
};

// Loads the policy and the optimizer into `run` and starts what this rank needs beside them. All
// pointers must outlive the result. Errors name the file, tensor or field.
absl::StatusOr<ModelState> LoadModelState(const GrpoHrdConfig& config, ProcessGroup* ranks,
                                          RankPlacement* placement, TrainingRun* run);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_MODEL_STATE_H_
