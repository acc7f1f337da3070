// Strict parser of a job's untrusted result channel (format in docs/protocol.md).
#ifndef TRITONRL_EXEC_OUTCOME_RESULT_JSON_H_
#define TRITONRL_EXEC_OUTCOME_RESULT_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/messages.pb.h"

namespace tritonrl {

// The program that a job runs. It decides which fields the job's result has.
enum class JobRole {
  kReference,  // runs the reference, makes inputs and expected outputs
  kRunner,     // runs the candidate
};

// Contents of a job's result channel.
struct JobChannel {
  std::string phase;             // the last phase announced; "" before the first
  bool candidate_began = false;  // a phase other than "reference" was announced
  bool has_result = false;
  // The parsed result. A runner's Outcome::OK means that it claims to have run, not that any output
  // is right.
  ExecResult result;
  std::string result_text;  // the result object as JSON
  std::string setup_error;  // why the process could not set up its confinement; "" if it could
};

// Parses the channel's lines, JSON objects with one key: "phase", "setup_error", or "result" in the
// last line. The channel is untrusted, as a candidate may have written to it. InvalidArgument: a
// line is something else, a field is missing or unknown, or the role may not report this outcome.
// No runner can report "correct".
absl::StatusOr<JobChannel> ParseChannel(absl::string_view bytes, JobRole role);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_OUTCOME_RESULT_JSON_H_
