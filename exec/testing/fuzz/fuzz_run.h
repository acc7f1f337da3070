// Many inputs in child processes: a crash, a hang or a broken promise ends a child, not the run.
#ifndef TRITONRL_EXEC_TESTING_FUZZ_FUZZ_RUN_H_
#define TRITONRL_EXEC_TESTING_FUZZ_FUZZ_RUN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/testing/fuzz/fuzz_target.h"

namespace tritonrl {

struct FuzzOptions {
  uint64_t first = 0;
  uint64_t count = 0;
  int jobs = 1;  // children at a time; they share the numbers
  // Time without an end of an input after which its child is killed.
  absl::Duration limit = absl::Minutes(1);
  int most_failures = 10;  // the run ends after so many
  // Called about five times a second with the number of inputs done, and the failures.
  std::function<void(uint64_t done, size_t failures)> tell;
};

struct FuzzFailure {
  uint64_t number = 0;
  std::string reason;  // "signal 11 (Segmentation fault)", "no end in 1m", the broken promise
};

struct FuzzReport {
  uint64_t done = 0;  // inputs that ran, failures included
  std::vector<FuzzFailure> failures;
};

// Runs the inputs first, first + 1, ... of the target. Call it before the process has threads.
// Internal: a child cannot be started.
absl::StatusOr<FuzzReport> RunFuzz(FuzzTarget* target, const FuzzOptions& options);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_TESTING_FUZZ_FUZZ_RUN_H_
