// Strict parser of a job's untrusted result channel (format in docs/protocol.md).
#ifndef TRITONRL_EXEC_OUTCOME_RESULT_JSON_H_
#define TRITONRL_EXEC_OUTCOME_RESULT_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/messages.pb.h"

namespace tritonrl {

// The program that a job runs.
enum class JobRole {
  kReference,  // runs the reference, makes inputs and expected outputs
  kRunner,     // a candidate's process, which reports no result
};

// Contents of a job's result channel.
struct JobChannel {
  std::string phase;             // the last phase announced; "" before the first
  bool candidate_began = false;  // a phase other than "reference" was announced
  bool has_result = false;
  ExecResult result;        // a reference's
  std::string result_text;  // the result object as JSON
  std::string setup_error;  // why the process could not set up its confinement; "" if it could
};

// Parses the channel's lines, JSON objects with one key: "phase", "setup_error", or "result" in the
// last line. The channel is untrusted, as a candidate may have written to it. InvalidArgument: a
// line is something else, a field is missing or unknown, or the role reports no result.
absl::StatusOr<JobChannel> ParseChannel(absl::string_view bytes, JobRole role);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_OUTCOME_RESULT_JSON_H_
