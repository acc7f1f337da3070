// The runner's result object (see exec/python/README.md) as an ExecResult.
#ifndef TRITONRL_EXEC_RESULT_JSON_H_
#define TRITONRL_EXEC_RESULT_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/messages.pb.h"

namespace tritonrl {

// What a job's process wrote into its result channel, taken apart line by line.
struct JobChannel {
  std::string phase;             // the last one announced; "" before the first
  bool candidate_began = false;  // a phase after "reference" was announced
  bool has_result = false;
  ExecResult result;
  std::string setup_error;  // the process could not set up its confinement
};

// Lines are JSON objects with one key: "phase", "setup_error", or one "result" as the last line.
// InvalidArgument when anything else is there: the candidate shares that process, so nothing in
// here is trusted to be well formed.
absl::StatusOr<JobChannel> ParseChannel(absl::string_view bytes);

// The job object that the runner is given. `time_limit_seconds` is its own soft limit, which ends a
// slow job between two launches with a better message than the supervisor's kill.
std::string JobJson(const ExecRequest& request, const std::string& device,
                    double time_limit_seconds);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_RESULT_JSON_H_
