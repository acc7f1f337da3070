#include "exec/device/json.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/device/limits.h"

namespace tritonrl::device {
namespace {

// Counts brackets and separators outside of texts, so that the parser never builds a tree that is
// too deep or too large. The parser checks the grammar.
absl::Status CheckNesting(absl::string_view text) {
  int depth = 0;
  int64_t nodes = 0;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') ++i;
      if (c == '"') in_text = false;
      continue;
    }
    in_text = c == '"';
    if (c == '[' || c == '{') ++depth, ++nodes;
    if (c == ']' || c == '}') --depth;
    if (c == ',' || c == ':') ++nodes;
    if (depth > kMaxJsonDepth) return Hostile("JSON that is nested too deep");
    if (nodes > kMaxJsonNodes) return Hostile("JSON with too many values");
  }
  return absl::OkStatus();
}

absl::Status WrongField(const char* name, absl::string_view wanted) {
  return Hostile(absl::StrCat("a field ", name, " that is not ", wanted));
}

}  // namespace

absl::Status Hostile(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("the candidate's process sent ", what));
}

absl::StatusOr<Json> ParseJson(absl::string_view text) {
  RETURN_IF_ERROR(CheckNesting(text));
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return Hostile("a text that is not JSON");
  return json;
}

std::string WriteJson(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<const Json*> FieldOf(const Json& object, const char* name) {
  if (!object.is_object()) return Hostile("a value that is not an object");
  const auto found = object.find(name);
  if (found == object.end()) return Hostile(absl::StrCat("an object without ", name));
  return &*found;
}

absl::StatusOr<int64_t> IntegerOf(const Json& value, const char* name, int64_t low, int64_t high) {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
  if (!fits) return WrongField(name, "an integer");
  const auto number = value.get<int64_t>();
  if (number < low || number > high) {
    return WrongField(name, absl::StrCat("between ", low, " and ", high));
  }
  return number;
}

absl::StatusOr<int64_t> IntegerField(const Json& object, const char* name, int64_t low,
                                     int64_t high) {
  ASSIGN_OR_RETURN(const Json* value, FieldOf(object, name));
  return IntegerOf(*value, name, low, high);
}

absl::StatusOr<uint64_t> SeedField(const Json& object, const char* name) {
  ASSIGN_OR_RETURN(const Json* value, FieldOf(object, name));
  if (value->is_number_unsigned()) return value->get<uint64_t>();
  if (value->is_number_integer()) return static_cast<uint64_t>(value->get<int64_t>());
  return WrongField(name, "an integer");
}

absl::StatusOr<bool> BoolField(const Json& object, const char* name) {
  ASSIGN_OR_RETURN(const Json* value, FieldOf(object, name));
  if (!value->is_boolean()) return WrongField(name, "true or false");
  return value->get<bool>();
}

absl::StatusOr<std::string> TextField(const Json& object, const char* name, size_t max_bytes) {
  ASSIGN_OR_RETURN(const Json* value, FieldOf(object, name));
  if (!value->is_string()) return WrongField(name, "a text");
  const std::string& text = value->get_ref<const std::string&>();
  if (text.size() > max_bytes) return Hostile(absl::StrCat("a text ", name, " that is too long"));
  return text;
}

absl::StatusOr<const Json*> ListField(const Json& object, const char* name, size_t max_items) {
  ASSIGN_OR_RETURN(const Json* value, FieldOf(object, name));
  if (!value->is_array()) return WrongField(name, "a list");
  if (value->size() > max_items) return Hostile(absl::StrCat("a list ", name, " that is too long"));
  return value;
}

int LineOf(const Json& object) {
  if (!object.is_object()) return 0;
  const auto found = object.find("line");
  if (found == object.end()) return 0;
  return static_cast<int>(IntegerOf(*found, "line", 0, 1 << 30).value_or(0));
}

}  // namespace tritonrl::device
