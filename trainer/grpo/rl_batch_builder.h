// From judged samples to what the learner takes.
#ifndef TRITONRL_TRAINER_GRPO_RL_BATCH_BUILDER_H_
#define TRITONRL_TRAINER_GRPO_RL_BATCH_BUILDER_H_

#include <string>

#include "trainer/config.pb.h"
#include "trainer/grpo/sample_batch.h"
#include "trainer/rl_batch.h"

namespace tritonrl {

// Rewards and advantages of every sample, in the batch's order. A sample whose verdict is a fault
// of ours is not counted: it moves neither its group's mean nor the weights.
RlBatch BuildRlBatch(const SampleBatch& batch, const ObjectiveConfig& objective);

// The same of one group, all of whose samples have been judged.
RlGroup BuildRlGroup(const SampleBatch& batch, const SampleGroup& group,
                     const ObjectiveConfig& objective);

// "task level1/3_relu: <what went wrong>" of the batch's first fault of ours; empty without one.
std::string FirstFault(const SampleBatch& batch);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_RL_BATCH_BUILDER_H_
