#include "exec/client_run/layout_values.h"

#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/device/geometry.h"
#include "exec/device/limits.h"
#include "exec/device/torch_errors.h"

namespace tritonrl {
namespace {

using Json = nlohmann::json;
using device::Value;
using Kind = device::Value::Kind;

constexpr size_t kAlignment = 64;  // of tensors in memory

absl::Status NotHandedOver(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("a value of kind ", what, " cannot be handed over"));
}

// Whether all elements can have places of their own with these strides.
bool HasOwnPlaces(const device::TensorRef& tensor) { return device::HasDistinctElements(tensor); }

absl::StatusOr<Value> TensorOf(const Json& node, absl::string_view memory, bool in_window) {
  // The layout was parsed before: its sizes are sane, and its tensors lie inside the memory.
  device::TensorRef tensor;
  const std::optional<at::ScalarType> type =
      device::ParseScalarType(node.at("dtype").get<std::string>());
  if (!type.has_value() || node.at("offset").is_null()) return NotHandedOver("tensor");
  tensor.dtype = *type;
  tensor.shape = node.at("shape").get<std::vector<int64_t>>();
  tensor.stride = node.at("stride").get<std::vector<int64_t>>();
  const char* const data = memory.data() + node.at("offset").get<uint64_t>();
  Value value;
  if (in_window) {
    ASSIGN_OR_RETURN(const int64_t span, device::SpanOf(tensor));
    const uint64_t bytes = static_cast<uint64_t>(span * device::BytesOf(tensor.dtype));
    if (bytes > memory.size() - node.at("offset").get<uint64_t>()) return NotHandedOver("tensor");
    RETURN_IF_ERROR(device::CatchTorch([&] {
      value = Value::Host(at::from_blob(const_cast<char*>(data), tensor.shape, tensor.stride,
                                        at::TensorOptions().dtype(tensor.dtype)));
    }));
    return value;
  }
  RETURN_IF_ERROR(device::CatchTorch([&] {
    const at::TensorOptions options = at::TensorOptions().dtype(tensor.dtype);
    const at::Tensor dense = at::from_blob(const_cast<char*>(data), tensor.shape, options);
    if (dense.strides() == tensor.stride || dense.numel() == 0 || !HasOwnPlaces(tensor)) {
      value = Value::Host(dense);
    } else {
      value = Value::Host(at::empty_strided(tensor.shape, tensor.stride, options).copy_(dense));
    }
  }));
  return value;
}

absl::StatusOr<double> NumberOf(const Json& json) {
  double number = 0;
  if (!json.is_string() || !absl::SimpleAtod(json.get_ref<const std::string&>(), &number)) {
    return NotHandedOver("float");
  }
  return number;
}

absl::StatusOr<Value> PlainOf(const Json& json) {
  Value value;
  if (json.is_null()) return value;
  if (json.is_boolean()) {
    value.kind = Kind::kBool;
    value.integer = json.get<bool>() ? 1 : 0;
    return value;
  }
  if (json.is_string()) {
    value.kind = Kind::kText;
    value.text = json.get<std::string>();
    return value;
  }
  return json.is_number_float() ? Value::Float(json.get<double>())
                                : Value::Integer(json.get<int64_t>());
}

bool HasKeys(Kind kind) { return kind == Kind::kDict || kind == Kind::kConfig; }

absl::StatusOr<Value> ReadLayout(const Json& layout, absl::string_view memory, bool in_window);

absl::StatusOr<Value> ContainerOf(Kind kind, const Json& items, absl::string_view memory,
                                  bool in_window) {
  Value value;
  value.kind = kind;
  for (const Json& item : items) {
    if (HasKeys(kind)) {
      ASSIGN_OR_RETURN(Value key, PlainOf(item.at(0)));
      value.keys.push_back(std::move(key));
    }
    ASSIGN_OR_RETURN(Value part, ReadLayout(HasKeys(kind) ? item.at(1) : item, memory, in_window));
    value.items.push_back(std::move(part));
  }
  return value;
}

absl::StatusOr<Value> ReadLayout(const Json& layout, absl::string_view memory, bool in_window) {
  if (!layout.is_object() || layout.size() != 1) return NotHandedOver("nothing");
  const std::string& kind = layout.begin().key();
  const Json& content = layout.begin().value();
  if (kind == "tensor") return TensorOf(content, memory, in_window);
  if (kind == "list") return ContainerOf(Kind::kList, content, memory, in_window);
  if (kind == "tuple") return ContainerOf(Kind::kTuple, content, memory, in_window);
  if (kind == "dict") return ContainerOf(Kind::kDict, content, memory, in_window);
  if (kind == "config") return ContainerOf(Kind::kConfig, content, memory, in_window);
  if (kind == "value") return PlainOf(content);
  if (kind == "float") {
    ASSIGN_OR_RETURN(const double number, NumberOf(content));
    return Value::Float(number);
  }
  Value value;
  if (kind == "complex") {
    value.kind = Kind::kComplex;
    ASSIGN_OR_RETURN(value.number, NumberOf(content.at(0)));
    ASSIGN_OR_RETURN(value.imaginary, NumberOf(content.at(1)));
    return value;
  }
  if (kind == "dtype" && content.is_string()) {
    const std::optional<at::ScalarType> type =
        device::ParseScalarType(content.get_ref<const std::string&>());
    if (!type.has_value()) return NotHandedOver("dtype");
    value.kind = Kind::kDType;
    value.integer = static_cast<int64_t>(*type);
    return value;
  }
  if (kind == "device" && content.is_string()) {
    value.kind = Kind::kDevice;
    value.text = content.get<std::string>();
    return value;
  }
  return NotHandedOver(kind);
}

// Writes values as layouts over one memory.
class LayoutWriter {
 public:
  LayoutWriter(const std::string& device, const device::Window* window)
      : device_(device), window_(window) {}
  absl::StatusOr<Json> Write(const Value& value, int depth) {
    if (depth > device::kMaxJsonDepth) return NotHandedOver("too deep nesting");
    switch (value.kind) {
      case Kind::kNull:
        return Json{{"value", nullptr}};
      case Kind::kBool:
        return Json{{"value", value.integer != 0}};
      case Kind::kInteger:
        return value.is_unsigned ? Json{{"value", static_cast<uint64_t>(value.integer)}}
                                 : Json{{"value", value.integer}};
      case Kind::kFloat:
        return WriteFloat(value.number);
      case Kind::kText:
        return Json{{"value", value.text}};
      case Kind::kList:
      case Kind::kTuple:
        return WriteItems(value, depth);
      case Kind::kDict:
      case Kind::kConfig:
        return WritePairs(value, depth);
      case Kind::kComplex:
        return Json{{"complex", {absl::StrCat(value.number), absl::StrCat(value.imaginary)}}};
      case Kind::kDType:
        return Json{{"dtype", device::NameOf(static_cast<at::ScalarType>(value.integer))}};
      case Kind::kDevice:
        return Json{{"device", value.text}};
      case Kind::kHost:
        return Json{{"tensor", WriteTensor(value.host)}};
      default:
        return Json{{"other", "object"}};
    }
  }
  std::string TakeMemory() { return std::move(memory_); }

 private:
  static Json WriteFloat(double number) {
    if (std::isfinite(number)) return Json{{"value", number}};
    return Json{{"float", std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf"}};
  }
  absl::StatusOr<Json> WriteItems(const Value& value, int depth) {
    Json items = Json::array();
    for (const Value& item : value.items) {
      ASSIGN_OR_RETURN(Json part, Write(item, depth + 1));
      items.push_back(std::move(part));
    }
    return Json{{value.kind == Kind::kList ? "list" : "tuple", std::move(items)}};
  }
  absl::StatusOr<Json> WritePairs(const Value& value, int depth) {
    Json pairs = Json::array();
    for (size_t i = 0; i < value.items.size(); ++i) {
      ASSIGN_OR_RETURN(Json part, Write(value.items[i], depth + 1));
      const Value& key = value.keys[i];
      Json name = key.kind == Kind::kText      ? Json(key.text)
                  : key.kind == Kind::kInteger ? Json(key.integer)
                                               : Json(absl::StrCat(key.number));
      pairs.push_back(Json::array({std::move(name), std::move(part)}));
    }
    return Json{{value.kind == Kind::kDict ? "dict" : "config", std::move(pairs)}};
  }
  Json WriteTensor(const at::Tensor& tensor) {
    if (window_ != nullptr) return Described(tensor, PlaceInWindow(tensor));
    memory_.resize((memory_.size() + kAlignment - 1) / kAlignment * kAlignment);
    const size_t offset = memory_.size();
    if (tensor.nbytes() > 0) {
      memory_.append(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
    }
    return Described(tensor, offset);
  }
  // Null: it does not lie there.
  Json PlaceInWindow(const at::Tensor& tensor) const {
    if (tensor.numel() == 0) return 0;
    const void* const data = tensor.is_meta() ? nullptr : tensor.const_data_ptr();
    if (data == nullptr || !window_->Contains(data)) return nullptr;
    return static_cast<uint64_t>(static_cast<const char*>(data) - window_->base());
  }
  Json Described(const at::Tensor& tensor, const Json& offset) const {
    return {{"dtype", device::NameOf(tensor.scalar_type())},
            {"shape", tensor.sizes().vec()},
            {"stride", tensor.strides().vec()},
            {"device", device_},
            {"layout", "strided"},
            {"offset", offset}};
  }

  const std::string& device_;  // of tensors
  const device::Window* window_;
  std::string memory_;
};

void AppendTensors(const Value& value, std::vector<at::Tensor>* tensors) {
  if (value.kind == Kind::kHost) tensors->push_back(value.host);
  for (const Value& item : value.items) AppendTensors(item, tensors);
}

bool SameList(const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!SameForm(a[i], b[i])) return false;
  }
  return true;
}

// NaN is the same as NaN here.
bool SameNumber(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

absl::StatusOr<Value> ValueOfLayout(const Json& layout, absl::string_view memory) {
  return ReadLayout(layout, memory, /*in_window=*/false);
}

absl::StatusOr<VisibleValues> ReadVisibleValues(absl::string_view visible_layout,
                                                absl::string_view memory,
                                                const device::Window* window) {
  const Json json = Json::parse(visible_layout, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("arguments") || !json.contains("state") ||
      !json.contains("inputs") || !json["inputs"].is_array()) {
    return absl::InternalError("the reference's layout lacks arguments, state or inputs");
  }
  VisibleValues values;
  // The reference's process says the constructor's arguments as a pair: a list and a dict.
  ASSIGN_OR_RETURN(Value arguments, ValueOfLayout(json["arguments"], memory));
  if (arguments.items.size() != 2) {
    return absl::InternalError("the reference's layout has other arguments than a list and a dict");
  }
  values.args = std::move(arguments.items[0]);
  values.kwargs = std::move(arguments.items[1]);
  ASSIGN_OR_RETURN(const Value state, ValueOfLayout(json["state"], memory));
  for (size_t i = 0; i < state.items.size(); ++i) {
    if (state.kind != Kind::kDict || state.items[i].kind != Kind::kHost) continue;
    values.state.emplace_back(state.keys[i].text, state.items[i].host);
  }
  if (const auto varied = json.find("varied"); varied != json.end() && varied->is_object()) {
    for (const auto& [name, constant] : varied->items()) {
      if (constant.is_number()) values.varied[name] = constant.get<double>();
    }
  }
  for (const Json& inputs : json["inputs"]) {
    const absl::string_view place =
        window == nullptr ? memory
                          : absl::string_view(window->base(), static_cast<size_t>(window->bytes()));
    ASSIGN_OR_RETURN(Value value, ReadLayout(inputs, place, window != nullptr));
    values.inputs.push_back(std::move(value));
  }
  return values;
}

std::vector<at::Tensor> TensorsOf(const Value& value) {
  std::vector<at::Tensor> tensors;
  AppendTensors(value, &tensors);
  return tensors;
}

bool SameForm(const Value& a, const Value& b) {
  if (a.kind != b.kind || a.integer != b.integer || a.is_unsigned != b.is_unsigned ||
      !SameNumber(a.number, b.number) || !SameNumber(a.imaginary, b.imaginary) ||
      a.text != b.text) {
    return false;
  }
  if (a.kind == Kind::kHost) {
    return a.host.scalar_type() == b.host.scalar_type() && a.host.sizes() == b.host.sizes() &&
           a.host.strides() == b.host.strides();
  }
  return SameList(a.keys, b.keys) && SameList(a.items, b.items);
}

absl::StatusOr<Json> LayoutOfValue(const Value& value, std::string* memory,
                                   const std::string& device, const device::Window* window) {
  LayoutWriter writer(device, window);
  ASSIGN_OR_RETURN(Json layout, writer.Write(value, 0));
  *memory = writer.TakeMemory();
  return layout;
}

absl::StatusOr<LeavesInMemory> LeavesOfValue(const Value& value, const std::string& device,
                                             const device::Window* window) {
  LeavesInMemory result;
  ASSIGN_OR_RETURN(const Json layout, LayoutOfValue(value, &result.memory, device, window));
  const size_t bytes = window == nullptr ? result.memory.size() : window->bytes();
  ASSIGN_OR_RETURN(result.leaves, ParseLayout(layout, bytes));
  return result;
}

}  // namespace tritonrl
