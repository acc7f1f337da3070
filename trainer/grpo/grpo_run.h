// A run of GRPO with hierarchical reward decomposition in one run folder.
#ifndef TRITONRL_TRAINER_GRPO_GRPO_RUN_H_
#define TRITONRL_TRAINER_GRPO_GRPO_RUN_H_

#include "absl/status/statusor.h"
#include "base/program.h"
#include "parallel/process_group.h"
#include "trainer/config/config.pb.h"
#include "trainer/run/training_run.h"

namespace tritonrl {

// Trains as configured, or resumes from the newest checkpoint in config.output_dir, up to the last
// step, with the configured evaluations. Called by all ranks together; rank 0 prints and writes.
// `config` must be valid (ValidateGrpoHrdConfig).
absl::StatusOr<TrainingOutcome> RunGrpoHrd(const GrpoHrdConfig& config, ProcessGroup* ranks,
                                           const SignalHandler& stop);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_GRPO_RUN_H_
