// Errors as OpenAI's API words them: an absl::Status that may name a field, its HTTP status, its
// JSON.
#ifndef TRITONRL_ROLLOUT_SERVE_API_ERROR_H_
#define TRITONRL_ROLLOUT_SERVE_API_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// InvalidArgument (HTTP 400) about one field of a request, "messages[1].content". The message reads
// "<field> <problem>".
absl::Status FieldError(absl::string_view field, absl::string_view problem);

// The same error with a word for programs, such as "context_length_exceeded".
absl::Status WithErrorCode(absl::Status status, absl::string_view code);

// 400 InvalidArgument, 401 Unauthenticated, 404 NotFound, 405 Unimplemented, 413 OutOfRange,
// 429 ResourceExhausted, 503 Unavailable, DeadlineExceeded, Cancelled and FailedPrecondition,
// 500 all others.
int HttpStatus(const absl::Status& status);

// {"error": {"message", "type", "param", "code"}} for an error.
nlohmann::json ErrorJson(const absl::Status& status);

// JSON as text on one line; never throws (what is not UTF-8 becomes U+FFFD).
std::string JsonText(const nlohmann::json& json);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_API_ERROR_H_
