#include "rollout/serve/openai/api_json.h"

#include <algorithm>
#include <optional>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace tritonrl {

namespace {

constexpr absl::string_view kField = "tritonrl/api_field";
constexpr absl::string_view kCode = "tritonrl/api_code";

nlohmann::json PayloadOrNull(const absl::Status& status, absl::string_view key) {
  const absl::optional<absl::Cord> payload = status.GetPayload(key);
  if (!payload) return nullptr;
  return std::string(*payload);
}

const char* ErrorType(int http_status) {
  if (http_status == 429) return "rate_limit_error";
  return http_status >= 500 ? "server_error" : "invalid_request_error";
}

}  // namespace

absl::Status FieldError(absl::string_view field, absl::string_view problem) {
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(field, " ", problem));
  status.SetPayload(kField, absl::Cord(field));
  return status;
}

absl::Status WithErrorCode(absl::Status status, absl::string_view code) {
  status.SetPayload(kCode, absl::Cord(code));
  return status;
}

int HttpStatus(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kUnimplemented:
      return 405;
    case absl::StatusCode::kOutOfRange:
      return 413;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kFailedPrecondition:
      return 503;
    default:
      return 500;
  }
}

nlohmann::json ErrorJson(const absl::Status& status) {
  return {{"error",
           {{"message", std::string(status.message())},
            {"type", ErrorType(HttpStatus(status))},
            {"param", PayloadOrNull(status, kField)},
            {"code", PayloadOrNull(status, kCode)}}}};
}

std::string JsonText(const nlohmann::json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
}

namespace {

// Nesting depth of the lists and objects in a JSON text. Parsing is not recursive, but each level
// costs far more memory than the one byte that opens it.
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
    // Numbers of different types compare by value: 0 equals 0.0.
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
