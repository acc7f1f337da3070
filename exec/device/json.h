// JSON from the candidate's process: a text becomes a tree of bounded size, or an error.
#ifndef TRITONRL_EXEC_DEVICE_JSON_H_
#define TRITONRL_EXEC_DEVICE_JSON_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tritonrl::device {

using Json = nlohmann::json;

// "the candidate's process sent ...", the form of every complaint about a message.
absl::Status Hostile(absl::string_view what);

// Nesting and number of nodes are within limits.h. Numbers beyond a double are an error.
absl::StatusOr<Json> ParseJson(absl::string_view text);

// Compact text; bytes that are not UTF-8 are replaced.
std::string WriteJson(const Json& json);

// Fields of an object. InvalidArgument: there is no such field, or it is of another type or range.
absl::StatusOr<const Json*> FieldOf(const Json& object, const char* name);
absl::StatusOr<int64_t> IntegerField(const Json& object, const char* name, int64_t low,
                                     int64_t high);
// The same for a value.
absl::StatusOr<int64_t> IntegerOf(const Json& value, const char* name, int64_t low, int64_t high);
absl::StatusOr<uint64_t> SeedField(const Json& object, const char* name);
absl::StatusOr<bool> BoolField(const Json& object, const char* name);
absl::StatusOr<std::string> TextField(const Json& object, const char* name, size_t max_bytes);
absl::StatusOr<const Json*> ListField(const Json& object, const char* name, size_t max_items);

// The line of the candidate's source, 0 if it is missing or no line number.
int LineOf(const Json& object);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_JSON_H_
