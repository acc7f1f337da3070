// Typed fields of a JSON object, such as config.json, with errors that name the source and the
// field.

#ifndef TRITONRL_MODEL_WEIGHTS_CONFIG_FIELDS_H_
#define TRITONRL_MODEL_WEIGHTS_CONFIG_FIELDS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tritonrl {

// Reads fields of one JSON object, which must outlive it. status() is the first error. A field that
// is missing or null leaves *value unchanged.
class ConfigFields {
 public:
  // `where` names the source in messages.
  ConfigFields(const nlohmann::json& object, std::string where)
      : object_(object), where_(std::move(where)) {}

  bool Has(const char* field) const {
    return object_.contains(field) && !object_.at(field).is_null();
  }

  void Integer(const char* field, bool required, int64_t* value) {
    if (!Has(field)) return Missing(field, required);
    if (!object_.at(field).is_number_integer()) return Fail(field, "must be a whole number");
    *value = object_.at(field).get<int64_t>();
  }

  void Number(const char* field, bool required, double* value) {
    if (!Has(field)) return Missing(field, required);
    if (!object_.at(field).is_number()) return Fail(field, "must be a number");
    *value = object_.at(field).get<double>();
  }

  void Bool(const char* field, bool* value) {
    if (!Has(field)) return;
    if (!object_.at(field).is_boolean()) return Fail(field, "must be true or false");
    *value = object_.at(field).get<bool>();
  }

  void Fail(const char* field, const std::string& problem) {
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(absl::StrCat(where_, ": field ", field, " ", problem));
    }
  }

  // Takes the first error of the reader of an inner object.
  void Adopt(const absl::Status& inner) { status_.Update(inner); }

  const absl::Status& status() const { return status_; }

 private:
  void Missing(const char* field, bool required) {
    if (required) Fail(field, "is missing");
  }

  const nlohmann::json& object_;
  std::string where_;
  absl::Status status_;
};

}  // namespace tritonrl

#endif  // TRITONRL_MODEL_WEIGHTS_CONFIG_FIELDS_H_
