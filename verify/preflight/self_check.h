// Checks references against themselves: programs that are right by definition and exactly as fast
// as the reference.
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
  std::string out;  // JSONL file, a line for each task; goes on where it stopped. "": none
  uint64_t seed = 0;
  int trials = 5;
  int parallel = 1;
  bool measure_time = true;
  absl::Duration wait_limit = absl::Minutes(10);      // for one task
  std::FILE* messages = stderr;                       // progress
  std::function<bool()> stop = [] { return false; };  // true: begin no more
};

// What one task came to.
struct SelfCheckEntry {
  std::string id;
  ExecResult result;
  // The interval of the speedup holds 1, or, of a modelled one, the speedup is 1.
  bool interval_contains_one = false;
};

struct SelfCheckSummary {
  std::vector<SelfCheckEntry> entries;  // of this run, in the order in which they ended
  int64_t already_done = 0;             // lines of an earlier run
  double seconds = 0;                   // of this run
};

// The reference as its own candidate: the same program with ModelNew for Model. The linter would
// refuse it, so it goes to the backend as it is.
std::string ReferenceAsCandidate(const std::string& reference_source);

// Sends every task to the backend. An error only for a file that cannot be written or that holds
// lines which are none of ours.
absl::StatusOr<SelfCheckSummary> RunSelfCheck(const std::vector<Task>& tasks,
                                              const SelfCheckOptions& options,
                                              DeviceBackend* backend);

// Counts by outcome, how often 1 was inside, the tasks where something was not as it should be,
// mean seconds by phase, and tasks a second.
std::string SelfCheckText(const SelfCheckSummary& summary);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_PREFLIGHT_SELF_CHECK_H_
