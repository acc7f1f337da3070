#include "exec/device/value.h"

#include <utility>

#include "base/status.h"

namespace tritonrl::device {

Value Value::Integer(int64_t integer) {
  Value value;
  value.kind = Kind::kInteger;
  value.integer = integer;
  return value;
}

Value Value::Float(double number) {
  Value value;
  value.kind = Kind::kFloat;
  value.number = number;
  return value;
}

Value Value::Host(at::Tensor tensor) {
  Value value;
  value.kind = Kind::kHost;
  value.host = std::move(tensor);
  return value;
}

Value Value::Tensor(TensorRef tensor) {
  Value value;
  value.kind = Kind::kTensor;
  value.tensor = std::move(tensor);
  return value;
}

Value Value::List(std::vector<Value> items) {
  Value value;
  value.kind = Kind::kList;
  value.items = std::move(items);
  return value;
}

absl::Status ForEachTensor(const Value& value, const std::function<absl::Status(const Value&)>& f) {
  if (value.kind == Value::Kind::kTensor || value.kind == Value::Kind::kHost) return f(value);
  for (const Value& item : value.items) RETURN_IF_ERROR(ForEachTensor(item, f));
  return absl::OkStatus();
}

}  // namespace tritonrl::device
