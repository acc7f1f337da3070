#include "exec/device/value_parser.h"

#include <ATen/ops/empty.h>
#include <c10/core/MemoryFormat.h>
#include <string.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/device/limits.h"

namespace tritonrl::device {
namespace {

constexpr size_t kMaxText = 1 << 16;

constexpr std::pair<absl::string_view, at::MemoryFormat> kMemoryFormats[] = {
    {"contiguous_format", at::MemoryFormat::Contiguous},
    {"preserve_format", at::MemoryFormat::Preserve},
    {"channels_last", at::MemoryFormat::ChannelsLast},
    {"channels_last_3d", at::MemoryFormat::ChannelsLast3d},
};

absl::StatusOr<std::vector<int64_t>> Sizes(const Json& object, const char* name) {
  ASSIGN_OR_RETURN(const Json* list, ListField(object, name, kMaxRank));
  std::vector<int64_t> sizes;
  for (const Json& item : *list) {
    ASSIGN_OR_RETURN(const int64_t size, IntegerOf(item, name, 0, int64_t{1} << 60));
    sizes.push_back(size);
  }
  return sizes;
}

absl::StatusOr<at::ScalarType> TypeField(const Json& object) {
  ASSIGN_OR_RETURN(const std::string name, TextField(object, "dtype", 64));
  const auto type = ParseScalarType(name);
  if (!type.has_value()) return Hostile("a tensor of an unknown type");
  return *type;
}

absl::StatusOr<bool> FlagOf(const Json& object, const char* name) {
  if (!object.contains(name)) return false;
  return BoolField(object, name);
}

// Any other byte than 0 and 1 is undefined in a C++ bool.
void NormalizeBools(char* bytes, int64_t count) {
  for (int64_t i = 0; i < count; ++i) bytes[i] = bytes[i] != 0;
}

absl::StatusOr<Value> ParseHost(const Json& json, absl::string_view payload) {
  TensorRef tensor;
  ASSIGN_OR_RETURN(tensor.dtype, TypeField(json));
  ASSIGN_OR_RETURN(tensor.shape, Sizes(json, "shape"));
  ASSIGN_OR_RETURN(const int64_t at, IntegerField(json, "at", 0, kMaxPayloadBytes));
  tensor.stride.assign(tensor.shape.size(), 0);
  if (const auto span = SpanOf(tensor); !span.ok()) return Hostile(span.status().message());
  const int64_t bytes = tensor.elements() * BytesOf(tensor.dtype);
  if (at > payload.size() || bytes > static_cast<int64_t>(payload.size()) - at) {
    return Hostile("a host tensor outside of its payload");
  }
  at::Tensor host = at::empty(tensor.shape, at::TensorOptions().dtype(tensor.dtype));
  if (bytes > 0) memcpy(host.data_ptr(), payload.data() + at, static_cast<size_t>(bytes));
  if (tensor.dtype == at::kBool) NormalizeBools(static_cast<char*>(host.data_ptr()), bytes);
  return Value::Host(std::move(host));
}

absl::StatusOr<std::vector<Value>> ParseItems(const Json& json, absl::string_view payload) {
  if (!json.is_array() || json.size() > kMaxListItems) return Hostile("a list that is too long");
  std::vector<Value> items;
  items.reserve(json.size());
  for (const Json& item : json) {
    ASSIGN_OR_RETURN(Value value, ParseValue(item, payload));
    items.push_back(std::move(value));
  }
  return items;
}

absl::StatusOr<Value> ParseDict(const Json& json, absl::string_view payload) {
  if (!json.is_array() || json.size() > kMaxListItems) return Hostile("a dict that is too long");
  Value dict;
  dict.kind = Value::Kind::kDict;
  for (const Json& pair : json) {
    if (!pair.is_array() || pair.size() != 2 || !(pair[0].is_string() || pair[0].is_number())) {
      return Hostile("a dict with a wrong entry");
    }
    ASSIGN_OR_RETURN(Value key, ParseValue(pair[0], payload));
    ASSIGN_OR_RETURN(Value value, ParseValue(pair[1], payload));
    dict.keys.push_back(std::move(key));
    dict.items.push_back(std::move(value));
  }
  return dict;
}

absl::StatusOr<double> ParseDouble(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json.is_object() && json.size() == 1 && json.contains("float"))
    return ParseDouble(json["float"]);
  if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (json == "inf") return std::numeric_limits<double>::infinity();
  if (json == "-inf") return -std::numeric_limits<double>::infinity();
  return Hostile("a float that is no number");
}

absl::StatusOr<Value> ParseName(const std::string& kind, const Json& json) {
  if (!json.is_string() || json.get_ref<const std::string&>().size() > 64) {
    return Hostile(absl::StrCat("a ", kind, " that is not a name"));
  }
  Value value;
  value.text = json.get<std::string>();
  if (kind == "dtype") {
    const auto type = ParseScalarType(value.text);
    if (!type.has_value()) return Hostile("an unknown dtype");
    value.kind = Value::Kind::kDType;
    value.integer = static_cast<int64_t>(*type);
    return value;
  }
  if (kind == "memory_format") {
    for (const auto& [name, format] : kMemoryFormats) {
      if (name != value.text) continue;
      value.kind = Value::Kind::kMemoryFormat;
      value.integer = static_cast<int64_t>(format);
      return value;
    }
    return Hostile("an unknown memory format");
  }
  if (kind == "layout" && value.text != "strided") return Hostile("an unknown layout");
  if (kind == "device" && value.text != "cuda" && value.text != "cpu") {
    return Hostile("an unknown device");
  }
  value.kind = kind == "layout" ? Value::Kind::kLayout : Value::Kind::kDevice;
  return value;
}

absl::StatusOr<Value> ParseObject(const Json& json, absl::string_view payload) {
  if (json.size() != 1) return Hostile("a value that is not an object of one field");
  const std::string& kind = json.begin().key();
  const Json& inner = json.begin().value();
  if (kind == "t") {
    ASSIGN_OR_RETURN(TensorRef tensor, ParseTensorRef(inner));
    return Value::Tensor(std::move(tensor));
  }
  if (kind == "host") return ParseHost(inner, payload);
  if (kind == "dict") return ParseDict(inner, payload);
  Value value;
  if (kind == "tuple") {
    value.kind = Value::Kind::kTuple;
    ASSIGN_OR_RETURN(value.items, ParseItems(inner, payload));
    return value;
  }
  if (kind == "float") {
    ASSIGN_OR_RETURN(const double number, ParseDouble(inner));
    return Value::Float(number);
  }
  if (kind == "complex") {
    if (!inner.is_array() || inner.size() != 2) return Hostile("a complex number of other parts");
    value.kind = Value::Kind::kComplex;
    ASSIGN_OR_RETURN(value.number, ParseDouble(inner[0]));
    ASSIGN_OR_RETURN(value.imaginary, ParseDouble(inner[1]));
    return value;
  }
  if (kind == "generator") {
    value.kind = Value::Kind::kGenerator;
    ASSIGN_OR_RETURN(value.integer, IntegerOf(inner, "generator", 0, int64_t{1} << 32));
    return value;
  }
  if (kind == "dtype" || kind == "device" || kind == "layout" || kind == "memory_format") {
    return ParseName(kind, inner);
  }
  return Hostile("a value of an unknown kind");
}

}  // namespace

absl::StatusOr<TensorRef> ParseTensorRef(const Json& json) {
  TensorRef tensor;
  ASSIGN_OR_RETURN(tensor.storage, IntegerField(json, "s", 0, int64_t{1} << 32));
  ASSIGN_OR_RETURN(tensor.dtype, TypeField(json));
  ASSIGN_OR_RETURN(tensor.shape, Sizes(json, "shape"));
  ASSIGN_OR_RETURN(tensor.stride, Sizes(json, "stride"));
  ASSIGN_OR_RETURN(tensor.offset, IntegerField(json, "offset", 0, int64_t{1} << 60));
  ASSIGN_OR_RETURN(tensor.negative, FlagOf(json, "neg"));
  ASSIGN_OR_RETURN(tensor.conjugate, FlagOf(json, "conj"));
  if (const auto span = SpanOf(tensor); !span.ok()) return Hostile(span.status().message());
  const bool complex = at::isComplexType(tensor.dtype);
  if (tensor.conjugate && !complex) return Hostile("a conjugate tensor that is not complex");
  if (tensor.negative && tensor.dtype == at::kBool) return Hostile("a negative tensor of bools");
  return tensor;
}

absl::StatusOr<Value> ParseValue(const Json& json, absl::string_view payload) {
  Value value;
  if (json.is_null()) return value;
  if (json.is_boolean()) {
    value.kind = Value::Kind::kBool;
    value.integer = json.get<bool>() ? 1 : 0;
    return value;
  }
  if (json.is_number_integer()) {
    value.kind = Value::Kind::kInteger;
    value.is_unsigned = json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX;
    value.integer =
        value.is_unsigned ? static_cast<int64_t>(json.get<uint64_t>()) : json.get<int64_t>();
    return value;
  }
  if (json.is_number_float()) return Value::Float(json.get<double>());
  if (json.is_string()) {
    value.kind = Value::Kind::kText;
    value.text = json.get<std::string>();
    if (value.text.size() > kMaxText) return Hostile("a text that is too long");
    return value;
  }
  if (json.is_array()) {
    ASSIGN_OR_RETURN(std::vector<Value> items, ParseItems(json, payload));
    return Value::List(std::move(items));
  }
  if (json.is_object()) return ParseObject(json, payload);
  return Hostile("a value of an unknown kind");
}

}  // namespace tritonrl::device
