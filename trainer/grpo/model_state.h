#ifndef TRITONRL_TRAINER_GRPO_MODEL_STATE_H_
#define TRITONRL_TRAINER_GRPO_MODEL_STATE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "parallel/process_group.h"
#include "rollout/engine/engine.h"
#include "rollout/engine/engine_config.h"
#include "trainer/config/config.pb.h"
#include "trainer/grpo/rank_placement.h"
#include "trainer/learner/learner.h"
#include "trainer/learner/log_probs.h"
#include "trainer/learner/policy.h"
#include "trainer/run/training_run.h"

// The policy on this rank with the objects that compute with it: engine, learner, reference policy.

namespace tritonrl {

struct ModelState {
  const Policy* policy = nullptr;
  RankPlacement* placement = nullptr;
  std::unique_ptr<ReferencePolicy>
      reference;                     // null without KL penalty or if the rank does not learn
  std::unique_ptr<Engine> engine;    // null on a rank that only learns
  std::unique_ptr<Learner> learner;  // null on a rank that only generates
};

// Loads the policy and the optimizer into `run` and starts the engine and the learner as this
// rank's placement requires. All pointers must outlive the result. Errors name the file, tensor or
// field.
absl::StatusOr<ModelState> LoadModelState(const GrpoHrdConfig& config, ProcessGroup* ranks,
                                          RankPlacement* placement, TrainingRun* run);

// Starts an engine that shares the policy's weights. `tensor_parallel_group`: the ranks over which
// the policy is sharded (MakeTensorParallelEngine); null: the policy is not sharded.
// InvalidArgument: prompt and response (`context.max_length`) exceed the model's positions.
absl::StatusOr<std::unique_ptr<Engine>> StartEngine(const Policy& policy,
                                                    const EngineConfig& config,
                                                    const EngineContext& context,
                                                    ProcessGroup* tensor_parallel_group = nullptr);

// Sampling settings of training.
SamplingSettings MakeSamplingSettings(const SamplingConfig& config, const Policy& policy);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_MODEL_STATE_H_
