// Many candidates, some of them evil, through one backend; and what is left afterwards.
#ifndef TRITONRL_EXEC_SOAKING_SOAK_H_
#define TRITONRL_EXEC_SOAKING_SOAK_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "exec/soaking/soak_report.h"

namespace tritonrl {

struct SoakOptions {
  int count = 2000;
  double evil_share = 1.0 / 3;
  uint64_t seed = 1;
  int workers = 2;
  bool torch_runner = true;  // false: the fake runner, for a quick test of the pool itself
  std::string backend = "interpreter";  // or "cuda"
  std::string sandbox = "bubblewrap";   // or "none"
  // Honest candidates are timed as well. On a GPU whoever is timed waits until all others have left
  // it, those that hang too, so that little else would be soaked.
  bool timing = true;
  // Added to each candidate's wall limit: what a job takes until the candidate's first line runs.
  double extra_seconds = 2;
  // No candidate begins after so many seconds; those that run then have ten more to end, and what
  // was done is concluded. 0: no end.
  double seconds = 0;
  absl::Duration tell_every = absl::Seconds(3);
  std::function<void(const SoakState&)> tell = [](const SoakState&) {};
};

// Runs the soak: first an honest candidate at each worker, for warmth and not counted, then the
// plan. An error when no worker starts or those first ones have no verdict.
absl::StatusOr<SoakReport> RunSoak(const SoakOptions& options);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SOAKING_SOAK_H_
