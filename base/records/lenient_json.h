// JSON as Python's json module writes it: with NaN, Infinity and halves of surrogate pairs.
#ifndef TRITONRL_BASE_RECORDS_LENIENT_JSON_H_
#define TRITONRL_BASE_RECORDS_LENIENT_JSON_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// Replaces half of a surrogate pair in a repaired text: U+FDD0, which is not a character.
inline constexpr char kHalfSurrogate[] = "\xEF\xB7\x90";

struct LenientJson {
  nlohmann::json json;
  // Whether NaN, Infinity or -Infinity became null, or half of a surrogate pair kHalfSurrogate.
  bool repaired = false;
};

// Parses `text`. InvalidArgument with the place of the first mistake.
absl::StatusOr<LenientJson> ParseLenientJson(absl::string_view text);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_RECORDS_LENIENT_JSON_H_
