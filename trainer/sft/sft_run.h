// A whole run of supervised fine-tuning in one run directory.
#ifndef TRITONRL_TRAINER_SFT_SFT_RUN_H_
#define TRITONRL_TRAINER_SFT_SFT_RUN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/signal_handler.h"
#include "parallel/process_group.h"
#include "trainer/config/config.pb.h"

namespace tritonrl {

struct SftOutcome {
  bool stopped = false;   // by a signal, with a checkpoint written; else the run is complete
  int64_t steps = 0;      // steps done
  double loss = 0;        // of the last step
  double eval_loss = -1;  // the last evaluation loss; -1 without evaluation data
  std::string model_dir;  // complete runs: the folder with the trained model
};

// Trains as configured, or goes on from the newest checkpoint in config.output_dir, up to the last
// step; writes <output_dir>/model at the end. Prints progress to stderr. `config` must have been
// checked (ValidateSftConfig).
absl::StatusOr<SftOutcome> RunSft(const SftConfig& config, ProcessGroup* ranks,
                                  const SignalHandler& stop);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_SFT_SFT_RUN_H_
