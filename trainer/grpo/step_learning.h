// How a step's samples become an update of the weights.
#ifndef TRITONRL_TRAINER_GRPO_STEP_LEARNING_H_
#define TRITONRL_TRAINER_GRPO_STEP_LEARNING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "trainer/grpo/early_learning.h"
#include "trainer/grpo/run_parts.h"
#include "trainer/grpo/sample_batch.h"
#include "trainer/learner.h"
#include "trainer/rl_batch.h"

namespace tritonrl {

struct LearnMoment {
  int64_t done = 0;                // steps
  bool ahead = false;              // samples of the next step are being generated
  EarlyLearning* early = nullptr;  // has begun to learn, with learn_early
};

// Called by all ranks together: learns from `batch`, which is made of `samples`, and gives the
// engines the weights of version done + 1. Where a rank both generates and learns its engine leaves
// the weights alone meanwhile, and what other policies say of the batch is filled in (`early` has
// groups of its own). The statistics are there on the ranks that learn.
absl::StatusOr<LearnStats> LearnStep(const SampleBatch& samples, const LearnMoment& moment,
                                     RlBatch* batch, RunParts* parts);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_STEP_LEARNING_H_
