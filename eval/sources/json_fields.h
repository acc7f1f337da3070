// The fields of a JSON object, each with its type checked.
#ifndef TRITONRL_EVAL_SOURCES_JSON_FIELDS_H_
#define TRITONRL_EVAL_SOURCES_JSON_FIELDS_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// Reads what other programs wrote: a wrong type is an error that names the field.
class JsonFields {
 public:
  // InvalidArgument with the place of the mistake if `text` is no JSON object. NaN and halves of
  // surrogate pairs, which Python's json writes, are no mistakes (ParseLenientJson).
  static absl::StatusOr<JsonFields> Parse(absl::string_view text);

  // True if there is such a field and it is not null.
  bool Has(const char* name) const;
  // The field. InvalidArgument: it is missing, or of another type.
  absl::StatusOr<std::string> Text(const char* name) const;
  absl::StatusOr<int> Number(const char* name, int smallest) const;
  absl::StatusOr<bool> Flag(const char* name) const;

 private:
  explicit JsonFields(nlohmann::json json) : json_(std::move(json)) {}

  nlohmann::json json_;
};

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_SOURCES_JSON_FIELDS_H_
