#include "rollout/serve/json_fields.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "rollout/serve/api_error.h"

namespace tritonrl {
namespace {

// How deep lists and objects of a JSON text lie within each other. Reading is not recursive, but
// each level costs far more memory than the one byte that it takes to write.
int Depth(absl::string_view text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text) {
  if (Depth(text) > kMaxJsonDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request's JSON is nested more than ", kMaxJsonDepth, " levels deep"));
  }
  try {
    nlohmann::json json = nlohmann::json::parse(text.begin(), text.end());
    if (json.is_object()) return json;
    return absl::InvalidArgumentError(
        absl::StrCat("the request must be a JSON object, not ", JsonTypeName(json)));
  } catch (const nlohmann::json::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request is not valid JSON: error at byte ", error.byte));
  } catch (const nlohmann::json::exception&) {
    return absl::InvalidArgumentError("the request's JSON holds a number that is too large");
  }
}

const char* JsonTypeName(const nlohmann::json& value) {
  switch (value.type()) {
    case nlohmann::json::value_t::null:
      return "null";
    case nlohmann::json::value_t::boolean:
      return "a boolean";
    case nlohmann::json::value_t::string:
      return "a string";
    case nlohmann::json::value_t::array:
      return "a list";
    case nlohmann::json::value_t::object:
      return "an object";
    default:
      return "a number";
  }
}

std::string JsonFields::Name(absl::string_view name) const { return absl::StrCat(prefix_, name); }

const nlohmann::json* JsonFields::Find(const char* name) {
  known_.insert(name);
  const auto it = object_.find(name);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

absl::Status JsonFields::Read(const char* name, bool* value) {
  const nlohmann::json* json = Find(name);
  if (json == nullptr) return absl::OkStatus();
  if (!json->is_boolean()) {
    return FieldError(Name(name), absl::StrCat("must be true or false, not ", JsonTypeName(*json)));
  }
  *value = json->get<bool>();
  return absl::OkStatus();
}

absl::Status JsonFields::Read(const char* name, std::string* value) {
  const nlohmann::json* json = Find(name);
  if (json == nullptr) return absl::OkStatus();
  if (!json->is_string()) {
    return FieldError(Name(name), absl::StrCat("must be a string, not ", JsonTypeName(*json)));
  }
  *value = json->get<std::string>();
  return absl::OkStatus();
}

absl::Status JsonFields::Read(const char* name, double low, double high, double* value) {
  const nlohmann::json* json = Find(name);
  if (json == nullptr) return absl::OkStatus();
  if (!json->is_number()) {
    return FieldError(Name(name), absl::StrCat("must be a number, not ", JsonTypeName(*json)));
  }
  const double number = json->get<double>();
  if (!(number >= low && number <= high)) {
    return FieldError(Name(name),
                      absl::StrCat("is ", number, ", must be from ", low, " to ", high));
  }
  *value = number;
  return absl::OkStatus();
}

absl::Status JsonFields::Read(const char* name, int64_t low, int64_t high,
                              std::optional<int64_t>* value) {
  const nlohmann::json* json = Find(name);
  if (json == nullptr) return absl::OkStatus();
  if (!json->is_number_integer()) {
    return FieldError(Name(name),
                      absl::StrCat("must be a whole number, not ",
                                   json->is_number() ? json->dump() : JsonTypeName(*json)));
  }
  const bool too_large = json->is_number_unsigned() && json->get<uint64_t>() > uint64_t{INT64_MAX};
  const int64_t number = too_large ? 0 : json->get<int64_t>();
  if (too_large || number < low || number > high) {
    return FieldError(Name(name),
                      absl::StrCat("is ", json->dump(), ", must be from ", low, " to ", high));
  }
  *value = number;
  return absl::OkStatus();
}

absl::Status JsonFields::Refuse(const char* name, std::initializer_list<nlohmann::json> neutral,
                                absl::string_view problem) {
  const nlohmann::json* json = Find(name);
  if (json == nullptr) return absl::OkStatus();
  for (const nlohmann::json& value : neutral) {
    // Numbers of different kinds are equal if their values are: 0 and 0.0.
    if (*json == value) return absl::OkStatus();
  }
  return FieldError(Name(name), problem);
}

void JsonFields::Ignore(std::initializer_list<const char*> names) {
  known_.insert(names.begin(), names.end());
}

absl::Status JsonFields::RefuseUnknown() const {
  for (const auto& [name, value] : object_.items()) {
    if (known_.count(name) > 0 || value.is_null()) continue;
    return FieldError(Name(name.substr(0, 64)), "is not a field that this server knows");
  }
  return absl::OkStatus();
}

}  // namespace tritonrl
