// The sizes that a runner is asked for, whatever it runs on.
#ifndef TRITONRL_ROLLOUT_RUNNER_SIZES_H_
#define TRITONRL_ROLLOUT_RUNNER_SIZES_H_

#include <cstdint>

#include "absl/status/status.h"

namespace tritonrl {

// Of the fields of a runner's options.
struct RunnerSizes {
  int max_running = 0;
  int64_t cache_bytes = 0;
  int max_step_tokens = 0;
  int64_t max_length = 0;
};

// InvalidArgument naming the option that is out of range, and the range: at least 1 and at most
// `most_running` sequences side by side, of at most `max_positions` tokens each.
absl::Status CheckRunnerSizes(const RunnerSizes& sizes, int most_running, int64_t max_positions);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_RUNNER_SIZES_H_
