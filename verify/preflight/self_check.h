// The self check: runs each reference as its own candidate, which is correct by definition and
// exactly as fast as the reference.
#ifndef TRITONRL_VERIFY_PREFLIGHT_SELF_CHECK_H_
#define TRITONRL_VERIFY_PREFLIGHT_SELF_CHECK_H_

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/device_backend.h"
#include "tasks/loader.h"

namespace tritonrl {

struct SelfCheckOptions {
  std::string out;  // JSONL file, a line per task; tasks in it are not repeated. "": no file
  uint64_t seed = 0;
  int trials = 5;
  int parallel = 1;
  bool measure_time = true;
  absl::Duration wait_limit = absl::Minutes(10);      // for one task: wait for a worker, and run
  std::FILE* messages = stderr;                       // for progress
  std::function<bool()> stop = [] { return false; };  // true: start no further task
};

// The result of one task.
struct SelfCheckEntry {
  std::string id;
  ExecResult result;
  // The interval of a measured speedup contains 1, or a modelled speedup is 1.
  bool interval_contains_one = false;
};

struct SelfCheckSummary {
  std::vector<SelfCheckEntry> entries;  // of this run, in the order in which the tasks ended
  int64_t already_done = 0;             // tasks checked by an earlier run
  double seconds = 0;                   // wall time of this run
};

// Returns the reference with Model also named ModelNew. The linter would refuse this candidate, so
// RunSelfCheck sends it directly to the backend.
std::string ReferenceAsCandidate(const std::string& reference_source);

// Runs all tasks at the backend. Errors: those of the backend, and of an output file that cannot be
// written or has a line that no self check wrote (DataLoss).
absl::StatusOr<SelfCheckSummary> RunSelfCheck(const std::vector<Task>& tasks,
                                              const SelfCheckOptions& options,
                                              DeviceBackend* backend);

// Returns a report: counts by outcome, the number of intervals that contain 1, mean seconds by
// phase, tasks per second, and the first 40 tasks that failed or whose interval excludes 1.
std::string SelfCheckText(const SelfCheckSummary& summary);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_PREFLIGHT_SELF_CHECK_H_
