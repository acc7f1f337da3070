#include "exec/device/operator_arguments.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/device/limits.h"

namespace tritonrl::device {
namespace {

absl::Status DoesNotFit(const c10::Argument& argument) {
  return absl::InvalidArgumentError(absl::StrCat("a wrong value for argument ", argument.name()));
}

std::optional<c10::Scalar> ScalarOf(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kBool:
      return c10::Scalar(value.integer != 0);
    case Value::Kind::kInteger:
      if (value.is_unsigned) return c10::Scalar(static_cast<uint64_t>(value.integer));
      return c10::Scalar(value.integer);
    case Value::Kind::kFloat:
      return c10::Scalar(value.number);
    case Value::Kind::kComplex:
      return c10::Scalar(c10::complex<double>(value.number, value.imaginary));
    default:
      return std::nullopt;
  }
}

bool IsList(const Value& value) {
  return value.kind == Value::Kind::kList || value.kind == Value::Kind::kTuple;
}

}  // namespace

absl::StatusOr<torch::jit::Stack> ArgumentBuilder::Build() {
  torch::jit::Stack stack;
  const auto& arguments = bound_.handle.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    ASSIGN_OR_RETURN(c10::IValue value, ArgumentValue(arguments[i], bound_.values[i]));
    stack.push_back(std::move(value));
  }
  return stack;
}

int ArgumentBuilder::PositionOf(const at::Tensor& tensor) const {
  for (const auto& [made, position] : made_) {
    if (made.is_same(tensor)) return position;
  }
  return -1;
}

bool ArgumentBuilder::IsOut(const at::Tensor& tensor) const {
  return std::any_of(outs_.begin(), outs_.end(),
                     [&](const at::Tensor& out) { return out.is_same(tensor); });
}

absl::StatusOr<c10::IValue> ArgumentBuilder::ArgumentValue(const c10::Argument& argument,
                                                           const Value* value) {
  // These say where memory comes from, which is not the candidate's to decide.
  if (argument.name() == "pin_memory") return c10::IValue();
  const c10::TypePtr& type = argument.real_type();
  const bool optional = type->kind() == c10::TypeKind::OptionalType;
  const c10::TypePtr inner = optional ? type->castRaw<c10::OptionalType>()->getElementType() : type;
  if (inner->kind() == c10::TypeKind::DeviceObjType) return c10::IValue(rules_.device);
  if (inner->kind() == c10::TypeKind::GeneratorType) return GeneratorValue(argument, value);
  if (value == nullptr) {
    if (argument.default_value().has_value()) return *argument.default_value();
    if (optional) return c10::IValue();
    return absl::InvalidArgumentError(absl::StrCat("argument ", argument.name(), " is missing"));
  }
  if (value->kind == Value::Kind::kNull) {
    if (optional) return c10::IValue();
    return DoesNotFit(argument);
  }
  return OfType(argument, *inner, *value);
}

absl::StatusOr<c10::IValue> ArgumentBuilder::GeneratorValue(const c10::Argument& argument,
                                                            const Value* value) {
  int64_t number = 0;
  if (value != nullptr && value->kind != Value::Kind::kNull) {
    if (value->kind != Value::Kind::kGenerator) return DoesNotFit(argument);
    number = value->integer;
  }
  if (rules_.generators == nullptr) return c10::IValue();
  RETURN_IF_ERROR(rules_.generators->Check(number));
  return c10::IValue(rules_.generators->Get(number));
}

absl::StatusOr<c10::IValue> ArgumentBuilder::OfType(const c10::Argument& argument,
                                                    const c10::Type& type, const Value& value) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return TensorValue(argument, value);
    case c10::TypeKind::ListType:
      return ListValue(argument, *type.castRaw<c10::ListType>()->getElementType(), value);
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      if (value.kind != Value::Kind::kInteger || value.is_unsigned) break;
      return c10::IValue(value.integer);
    case c10::TypeKind::FloatType:
      if (value.kind == Value::Kind::kFloat) return c10::IValue(value.number);
      if (value.kind != Value::Kind::kInteger || value.is_unsigned) break;
      return c10::IValue(static_cast<double>(value.integer));
    case c10::TypeKind::BoolType:
      if (value.kind != Value::Kind::kBool) break;
      return c10::IValue(value.integer != 0);
    case c10::TypeKind::NumberType:
      if (const auto scalar = ScalarOf(value)) return c10::IValue(*scalar);
      break;
    case c10::TypeKind::StringType:
      if (value.kind != Value::Kind::kText) break;
      return c10::IValue(value.text);
    case c10::TypeKind::ScalarTypeType:
      if (value.kind != Value::Kind::kDType) break;
      return c10::IValue(static_cast<at::ScalarType>(value.integer));
    case c10::TypeKind::LayoutType:
      if (value.kind != Value::Kind::kLayout) break;
      return c10::IValue(at::kStrided);
    case c10::TypeKind::MemoryFormatType:
      if (value.kind != Value::Kind::kMemoryFormat) break;
      return c10::IValue(static_cast<at::MemoryFormat>(value.integer));
    default:
      break;
  }
  return DoesNotFit(argument);
}

absl::StatusOr<c10::IValue> ArgumentBuilder::TensorValue(const c10::Argument& argument,
                                                         const Value& value) {
  const bool written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
  if (value.kind == Value::Kind::kTensor) {
    at::Tensor tensor;
    if (argument.is_out() && !rules_.writes_out) {
      const at::Tensor given = rules_.tensor(value);
      tensor = at::empty({0}, given.options());
      outs_.push_back(tensor);
    } else {
      tensor = rules_.tensor(value);
    }
    const auto place = std::find(bound_.tensors.begin(), bound_.tensors.end(), &value.tensor);
    made_.emplace_back(tensor, static_cast<int>(place - bound_.tensors.begin()));
    return c10::IValue(tensor);
  }
  if (written) return DoesNotFit(argument);
  if (value.kind == Value::Kind::kHost) return c10::IValue(rules_.tensor(value));
  // A Python number beside a tensor: it does not take part in type promotion as a tensor would.
  if (const auto scalar = ScalarOf(value)) {
    const at::Device device = rules_.device.is_meta() ? rules_.device : at::Device(at::kCPU);
    at::Tensor tensor =
        at::scalar_tensor(*scalar, at::TensorOptions(scalar->type()).device(device));
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    return c10::IValue(tensor);
  }
  return DoesNotFit(argument);
}

absl::StatusOr<c10::IValue> ArgumentBuilder::TensorList(const c10::Argument& argument,
                                                        const Value& value) {
  c10::List<at::Tensor> list;
  for (const Value& item : value.items) {
    ASSIGN_OR_RETURN(const c10::IValue tensor, TensorValue(argument, item));
    list.push_back(tensor.toTensor());
  }
  return c10::IValue(std::move(list));
}

absl::StatusOr<c10::IValue> ArgumentBuilder::OptionalTensorList(const c10::Argument& argument,
                                                                const Value& value) {
  c10::List<std::optional<at::Tensor>> list;
  for (const Value& item : value.items) {
    if (item.kind == Value::Kind::kNull) {
      list.push_back(std::nullopt);
      continue;
    }
    ASSIGN_OR_RETURN(const c10::IValue tensor, TensorValue(argument, item));
    list.push_back(std::optional<at::Tensor>(tensor.toTensor()));
  }
  return c10::IValue(std::move(list));
}

// Lists of numbers: T is the list's element, f makes it of a value.
template <typename T>
absl::StatusOr<c10::IValue> ArgumentBuilder::NumberList(const c10::Argument& argument,
                                                        const Value& value,
                                                        const c10::Type& element) {
  c10::List<T> list;
  for (const Value& item : value.items) {
    ASSIGN_OR_RETURN(const c10::IValue number, OfType(argument, element, item));
    list.push_back(number.to<T>());
  }
  return c10::IValue(std::move(list));
}

absl::StatusOr<c10::IValue> ArgumentBuilder::ListValue(const c10::Argument& argument,
                                                       const c10::Type& element,
                                                       const Value& value) {
  if (!IsList(value) || value.items.size() > kMaxListItems) return DoesNotFit(argument);
  switch (element.kind()) {
    case c10::TypeKind::TensorType:
      return TensorList(argument, value);
    case c10::TypeKind::OptionalType:
      if (element.castRaw<c10::OptionalType>()->getElementType()->kind() !=
          c10::TypeKind::TensorType) {
        return DoesNotFit(argument);
      }
      return OptionalTensorList(argument, value);
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return NumberList<int64_t>(argument, value, element);
    case c10::TypeKind::FloatType:
      return NumberList<double>(argument, value, element);
    case c10::TypeKind::BoolType:
      return NumberList<bool>(argument, value, element);
    default:
      return DoesNotFit(argument);
  }
}

}  // namespace tritonrl::device
