// A run of supervised fine-tuning in one run folder.
#ifndef TRITONRL_TRAINER_SFT_SFT_RUN_H_
#define TRITONRL_TRAINER_SFT_SFT_RUN_H_

#include "absl/status/statusor.h"
#include "base/program.h"
#include "parallel/process_group.h"
#include "trainer/config/config.pb.h"
#include "trainer/run/training_run.h"

namespace tritonrl {

// Trains as configured, or resumes from the newest checkpoint in config.output_dir, up to the last
// step. Prints progress to stderr. `config` must be valid (ValidateSftConfig).
absl::StatusOr<TrainingOutcome> RunSft(const SftConfig& config, ProcessGroup* ranks,
                                       const SignalHandler& stop);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_SFT_SFT_RUN_H_
