// A job's result object (see docs/protocol.md) as an ExecResult.
#ifndef TRITONRL_EXEC_OUTCOME_RESULT_JSON_H_
#define TRITONRL_EXEC_OUTCOME_RESULT_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/messages.pb.h"

namespace tritonrl {

// What a job does; its result has the fields of its role.
enum class JobRole {
  kReference,  // runs the reference, makes inputs and expected outputs
  kRunner,     // runs the candidate
};

// What a job's process wrote into its result channel, taken apart line by line.
struct JobChannel {
  std::string phase;             // the last one announced; "" before the first
  bool candidate_began = false;  // a phase after "reference" was announced
  bool has_result = false;
  // Of a runner: Outcome::OK here means that it says it ran, not that anything was right.
  ExecResult result;
  std::string result_text;  // the result object itself, as JSON
  std::string setup_error;  // the process could not set up its confinement
};

// Lines are JSON objects with one key: "phase", "setup_error", or one "result" as the last line.
// InvalidArgument when anything else is there, a field is missing or too many, or an outcome is not
// one that the role may report: a candidate may have written it, so nothing in here is trusted. A
// runner in particular has no word for "correct".
absl::StatusOr<JobChannel> ParseChannel(absl::string_view bytes, JobRole role);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_OUTCOME_RESULT_JSON_H_
