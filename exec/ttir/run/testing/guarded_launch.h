// Launches of texts that may be damaged, with arguments between guards.
#ifndef TRITONRL_EXEC_TTIR_RUN_TESTING_GUARDED_LAUNCH_H_
#define TRITONRL_EXEC_TTIR_RUN_TESTING_GUARDED_LAUNCH_H_

#include <cstdint>
#include <random>
#include <string>

#include "absl/status/status.h"

namespace tritonrl::ttir {

// How many texts were launched, as they verify, and how many launches finished without an error.
struct GuardedLaunches {
  int64_t launched = 0;
  int64_t finished = 0;
};

// Compiles a text and, if it verifies, launches its kernel with random arguments, some without
// sense, and small limits. Internal: the launch wrote beside its arguments, or what it says is not
// one sentence.
absl::Status LaunchGuarded(const std::string& text, std::mt19937& random,
                           GuardedLaunches* launches);

}  // namespace tritonrl::ttir

#endif  // TRITONRL_EXEC_TTIR_RUN_TESTING_GUARDED_LAUNCH_H_
