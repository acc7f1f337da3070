#include "eval/sources/json_fields.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/records/lenient_json.h"
#include "base/status.h"

namespace tritonrl {
namespace {

// Numbers of samples, problems and tokens; far above any real one.
constexpr int64_t kLargest = 10'000'000;
constexpr size_t kMaxShown = 60;  // bytes of a wrong value in a message

absl::Status Wrong(const char* name, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("field '", name, "' ", what));
}

// Lists and objects are not shown: they may be nested deeper than the stack allows to write.
std::string Shown(const nlohmann::json& value) {
  if (value.is_structured()) return absl::StrCat("an ", value.type_name());
  const std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return text.size() <= kMaxShown ? text : absl::StrCat(text.substr(0, kMaxShown), "...");
}

}  // namespace

absl::StatusOr<JsonFields> JsonFields::Parse(absl::string_view text) {
  absl::StatusOr<LenientJson> parsed = ParseLenientJson(text);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(parsed.status().message(), "; wanted one JSON object"));
  }
  if (!parsed->json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat("wanted one JSON object, but this is ", parsed->json.type_name()));
  }
  return JsonFields(std::move(parsed->json));
}

bool JsonFields::Has(const char* name) const {
  const auto found = json_.find(name);
  return found != json_.end() && !found->is_null();
}

absl::StatusOr<std::string> JsonFields::Text(const char* name) const {
  if (!Has(name)) return Wrong(name, "is missing; it must be a string");
  const nlohmann::json& value = json_.at(name);
  if (!value.is_string()) return Wrong(name, "is " + Shown(value) + "; it must be a string");
  return value.get<std::string>();
}

absl::StatusOr<int> JsonFields::Number(const char* name, int smallest) const {
  const std::string wanted = absl::StrCat("it must be an integer from ", smallest, " on");
  if (!Has(name)) return Wrong(name, "is missing; " + wanted);
  const nlohmann::json& value = json_.at(name);
  const bool fits =
      value.is_number_integer() &&
      (value.is_number_unsigned() ? value.get<uint64_t>() <= uint64_t{kLargest} : true) &&
      value.get<int64_t>() >= smallest && value.get<int64_t>() <= kLargest;
  if (!fits) return Wrong(name, absl::StrCat("is ", Shown(value), "; ", wanted));
  return static_cast<int>(value.get<int64_t>());
}

absl::StatusOr<bool> JsonFields::Flag(const char* name) const {
  if (!Has(name)) return Wrong(name, "is missing; it must be true or false");
  const nlohmann::json& value = json_.at(name);
  if (!value.is_boolean()) return Wrong(name, "is " + Shown(value) + "; it must be true or false");
  return value.get<bool>();
}

}  // namespace tritonrl
