#include "exec/device/value_writer.h"

#include <cmath>
#include <utility>
#include <vector>

#include "base/status.h"

namespace tritonrl::device {
namespace {

Json FloatToJson(double number) {
  if (std::isfinite(number)) return number;
  return {{"float", std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf"}};
}

absl::StatusOr<Json> HostToJson(const at::Tensor& tensor, std::string& payload) {
  if (NameOf(tensor.scalar_type()).empty()) {
    return absl::InvalidArgumentError("a tensor of a type that cannot be sent");
  }
  const at::Tensor dense = tensor.resolve_conj().resolve_neg().contiguous();
  const Json host = {{"dtype", std::string(NameOf(dense.scalar_type()))},
                     {"shape", dense.sizes().vec()},
                     {"at", payload.size()}};
  payload.append(static_cast<const char*>(dense.data_ptr()), dense.nbytes());
  return Json{{"host", host}};
}

absl::StatusOr<Json> ItemsToJson(const std::vector<Value>& items, std::string& payload,
                                 const TensorWriter& tensor) {
  Json list = Json::array();
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(Json json, ValueToJson(item, payload, tensor));
    list.push_back(std::move(json));
  }
  return list;
}

absl::StatusOr<Json> DictToJson(const Value& dict, std::string& payload,
                                const TensorWriter& tensor) {
  Json list = Json::array();
  for (size_t i = 0; i < dict.items.size(); ++i) {
    ASSIGN_OR_RETURN(Json key, ValueToJson(dict.keys[i], payload, tensor));
    ASSIGN_OR_RETURN(Json value, ValueToJson(dict.items[i], payload, tensor));
    list.push_back(Json::array({std::move(key), std::move(value)}));
  }
  return Json{{dict.kind == Value::Kind::kDict ? "dict" : "config", std::move(list)}};
}

}  // namespace

Json TensorRefToJson(const TensorRef& tensor) {
  Json json = {{"s", tensor.storage},
               {"dtype", std::string(NameOf(tensor.dtype))},
               {"shape", tensor.shape},
               {"stride", tensor.stride},
               {"offset", tensor.offset}};
  if (tensor.negative) json["neg"] = true;
  if (tensor.conjugate) json["conj"] = true;
  return json;
}

absl::StatusOr<Json> ValueToJson(const Value& value, std::string& payload,
                                 const TensorWriter& tensor) {
  switch (value.kind) {
    case Value::Kind::kNull:
      return Json();
    case Value::Kind::kBool:
      return Json(value.integer != 0);
    case Value::Kind::kInteger:
      if (value.is_unsigned) return Json(static_cast<uint64_t>(value.integer));
      return Json(value.integer);
    case Value::Kind::kFloat:
      return FloatToJson(value.number);
    case Value::Kind::kText:
      return Json(value.text);
    case Value::Kind::kList:
      return ItemsToJson(value.items, payload, tensor);
    case Value::Kind::kTuple: {
      ASSIGN_OR_RETURN(Json items, ItemsToJson(value.items, payload, tensor));
      return Json{{"tuple", std::move(items)}};
    }
    case Value::Kind::kDict:
    case Value::Kind::kConfig:
      return DictToJson(value, payload, tensor);
    case Value::Kind::kComplex:
      return Json{
          {"complex", Json::array({FloatToJson(value.number), FloatToJson(value.imaginary)})}};
    case Value::Kind::kDType:
      return Json{{"dtype", std::string(NameOf(static_cast<at::ScalarType>(value.integer)))}};
    case Value::Kind::kDevice:
      return Json{{"device", value.text}};
    case Value::Kind::kLayout:
      return Json{{"layout", value.text}};
    case Value::Kind::kMemoryFormat:
      return Json{{"memory_format", value.text}};
    case Value::Kind::kGenerator:
      return Json{{"generator", value.integer}};
    case Value::Kind::kTensor:
      if (tensor) return tensor(value.tensor);
      return Json{{"t", TensorRefToJson(value.tensor)}};
    case Value::Kind::kHost:
      return HostToJson(value.host, payload);
  }
  return Json();
}

}  // namespace tritonrl::device
