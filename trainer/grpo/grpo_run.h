// A whole run of GRPO with hierarchical reward decomposition in one run folder.
#ifndef TRITONRL_TRAINER_GRPO_GRPO_RUN_H_
#define TRITONRL_TRAINER_GRPO_GRPO_RUN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/signal_handler.h"
#include "parallel/process_group.h"
#include "trainer/config/config.pb.h"

namespace tritonrl {

struct GrpoOutcome {
  bool stopped = false;   // by a signal, with a checkpoint written; else the run is complete
  int64_t steps = 0;      // steps done
  std::string model_dir;  // complete runs: the folder with the trained policy
};

// Trains as configured, or goes on from the newest checkpoint in config.output_dir, up to the last
// step, with the evaluations that the configuration asks for. Rank 0 prints and writes. `config`
// must have been checked (ValidateGrpoHrdConfig). On an error the steps done so far are saved first
// where that is still possible.
absl::StatusOr<GrpoOutcome> RunGrpoHrd(const GrpoHrdConfig& config, ProcessGroup* ranks,
                                       const SignalHandler& stop);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_GRPO_GRPO_RUN_H_
