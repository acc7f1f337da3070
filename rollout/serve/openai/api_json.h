// JSON of OpenAI's API: errors (an absl::Status that may name a field) and the fields of untrusted
// objects.

#ifndef TRITONRL_ROLLOUT_SERVE_OPENAI_API_JSON_H_
#define TRITONRL_ROLLOUT_SERVE_OPENAI_API_JSON_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// InvalidArgument (HTTP 400) about one field of a request, such as "messages[1].content". The
// message is "<field> <problem>".
absl::Status FieldError(absl::string_view field, absl::string_view problem);

// Adds a code for programs to an error, such as "context_length_exceeded".
absl::Status WithErrorCode(absl::Status status, absl::string_view code);

// 400 InvalidArgument, 401 Unauthenticated, 404 NotFound, 405 Unimplemented, 413 OutOfRange,
// 429 ResourceExhausted, 503 Unavailable, DeadlineExceeded, Cancelled and FailedPrecondition,
// 500 all others.
int HttpStatus(const absl::Status& status);

// {"error": {"message", "type", "param", "code"}} for an error.
nlohmann::json ErrorJson(const absl::Status& status);

// JSON as text on one line; never throws (bytes that are not UTF-8 become U+FFFD).
std::string JsonText(const nlohmann::json& json);

// Parses a JSON text whose outermost value is an object and whose values are nested at most
// kMaxJsonDepth deep. InvalidArgument names the mistake and its position.
inline constexpr int kMaxJsonDepth = 32;
absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text);

// "a string", "a number", "a list", ...
const char* JsonTypeName(const nlohmann::json& value);

// The fields of one object. A field that is null counts as absent. Errors are those of FieldError,
// with the field's whole name.
class JsonFields {
 public:
  // `object` must outlive this and be an object. `prefix` stands before names in errors: "" or
  // "messages[2].".
  explicit JsonFields(const nlohmann::json& object, std::string prefix = "")
      : object_(object), prefix_(std::move(prefix)) {}

  // The field, or null; marks it as known.
  const nlohmann::json* Find(const char* name);
  // Full name of a field, for errors.
  std::string Name(absl::string_view name) const;

  // Each overload reads a field into `*value`, which does not change if the field is absent.
  absl::Status Read(const char* name, bool* value);
  absl::Status Read(const char* name, std::string* value);
  // A number in [low, high].
  absl::Status Read(const char* name, double low, double high, double* value);
  // A whole number in [low, high].
  absl::Status Read(const char* name, int64_t low, int64_t high, std::optional<int64_t>* value);

  // FieldError if the field is present and equals none of `neutral`.
  absl::Status Refuse(const char* name, std::initializer_list<nlohmann::json> neutral,
                      absl::string_view problem);
  // Marks these fields as known, with any value.
  void Ignore(std::initializer_list<const char*> names);
  // FieldError for the first field that is not known.
  absl::Status RefuseUnknown() const;

 private:
  const nlohmann::json& object_;
  const std::string prefix_;
  std::set<std::string> known_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_OPENAI_API_JSON_H_
