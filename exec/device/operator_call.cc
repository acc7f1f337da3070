#include "exec/device/operator_call.h"

#include <ATen/core/jit_type.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/device/limits.h"
#include "exec/device/torch_errors.h"

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

// Makes the arguments of one call.
class StackBuilder {
 public:
  StackBuilder(const BoundCall& bound, const ArgumentRules& rules) : bound_(bound), rules_(rules) {}

  absl::StatusOr<torch::jit::Stack> Build() {
    torch::jit::Stack stack;
    const auto& arguments = bound_.handle.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
      ASSIGN_OR_RETURN(c10::IValue value, ArgumentValue(arguments[i], bound_.values[i]));
      stack.push_back(std::move(value));
    }
    return stack;
  }
  // Which of the device tensors, in order, an argument's implementation is; -1: none.
  int PositionOf(const at::Tensor& tensor) const {
    for (const auto& [made, position] : made_) {
      if (made.is_same(tensor)) return position;
    }
    return -1;
  }
  bool IsOut(const at::Tensor& tensor) const {
    return std::any_of(outs_.begin(), outs_.end(),
                       [&](const at::Tensor& out) { return out.is_same(tensor); });
  }

 private:
  absl::StatusOr<c10::IValue> ArgumentValue(const c10::Argument& argument, const Value* value) {
    // These say where memory comes from, which is not the candidate's to decide.
    if (argument.name() == "pin_memory") return c10::IValue();
    const c10::TypePtr& type = argument.real_type();
    const bool optional = type->kind() == c10::TypeKind::OptionalType;
    const c10::TypePtr inner =
        optional ? type->castRaw<c10::OptionalType>()->getElementType() : type;
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

  absl::StatusOr<c10::IValue> GeneratorValue(const c10::Argument& argument, const Value* value) {
    int64_t number = 0;
    if (value != nullptr && value->kind != Value::Kind::kNull) {
      if (value->kind != Value::Kind::kGenerator) return DoesNotFit(argument);
      number = value->integer;
    }
    if (rules_.generators == nullptr) return c10::IValue();
    RETURN_IF_ERROR(rules_.generators->Check(number));
    return c10::IValue(rules_.generators->Get(number));
  }

  absl::StatusOr<c10::IValue> OfType(const c10::Argument& argument, const c10::Type& type,
                                     const Value& value) {
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

  absl::StatusOr<c10::IValue> TensorValue(const c10::Argument& argument, const Value& value) {
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

  absl::StatusOr<c10::IValue> TensorList(const c10::Argument& argument, const Value& value) {
    c10::List<at::Tensor> list;
    for (const Value& item : value.items) {
      ASSIGN_OR_RETURN(const c10::IValue tensor, TensorValue(argument, item));
      list.push_back(tensor.toTensor());
    }
    return c10::IValue(std::move(list));
  }

  absl::StatusOr<c10::IValue> OptionalTensorList(const c10::Argument& argument,
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
  absl::StatusOr<c10::IValue> NumberList(const c10::Argument& argument, const Value& value,
                                         const c10::Type& element) {
    c10::List<T> list;
    for (const Value& item : value.items) {
      ASSIGN_OR_RETURN(const c10::IValue number, OfType(argument, element, item));
      list.push_back(number.to<T>());
    }
    return c10::IValue(std::move(list));
  }

  absl::StatusOr<c10::IValue> ListValue(const c10::Argument& argument, const c10::Type& element,
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

  const BoundCall& bound_;
  const ArgumentRules& rules_;
  std::vector<std::pair<at::Tensor, int>> made_;
  std::vector<at::Tensor> outs_;
};

absl::StatusOr<Returned> ReturnedOf(const c10::IValue& value, const StackBuilder& builder) {
  Returned returned;
  if (value.isTensor()) {
    if (!value.toTensor().defined()) return returned;
    returned.argument = builder.PositionOf(value.toTensor());
    if (returned.argument < 0 || builder.IsOut(value.toTensor())) {
      returned.tensor = value.toTensor();
    }
    return returned;
  }
  if (value.isBool()) {
    returned.other.kind = Value::Kind::kBool;
    returned.other.integer = value.toBool() ? 1 : 0;
  } else if (value.isInt()) {
    returned.other = Value::Integer(value.toInt());
  } else if (value.isDouble()) {
    returned.other = Value::Float(value.toDouble());
  } else if (!value.isNone()) {
    return absl::UnimplementedError("an operator returns something that is no tensor");
  }
  return returned;
}

absl::Status CollectTensors(const Value& value, BoundCall& bound) {
  return ForEachTensor(value, [&](const Value& leaf) {
    if (leaf.kind == Value::Kind::kTensor) {
      bound.tensors.push_back(&leaf.tensor);
    } else {
      bound.hosts.push_back(&leaf.host);
    }
    return absl::OkStatus();
  });
}

}  // namespace

const Value* BoundCall::Find(const char* argument) const {
  const auto& arguments = handle.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() != argument) continue;
    return values[i] == nullptr || values[i]->kind == Value::Kind::kNull ? nullptr : values[i];
  }
  return nullptr;
}

int64_t BoundCall::most_elements() const {
  int64_t most = 0;
  for (const TensorRef* tensor : tensors) most = std::max(most, tensor->elements());
  for (const at::Tensor* host : hosts) most = std::max(most, host->numel());
  return most;
}

bool BoundCall::in_place() const {
  const auto& returns = handle.schema().returns();
  return std::all_of(returns.begin(), returns.end(), [](const c10::Argument& value) {
    return value.alias_info() != nullptr && value.alias_info()->isWrite();
  });
}

bool BoundCall::has_out() const {
  const auto& arguments = handle.schema().arguments();
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const c10::Argument& argument) { return argument.is_out(); });
}

absl::StatusOr<BoundCall> Bind(const OperatorCall& call) {
  const auto handle =
      c10::Dispatcher::singleton().findSchema({absl::StrCat("aten::", call.name), call.overload});
  if (!handle.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no operator aten::", call.name, " ", call.overload));
  }
  BoundCall bound{&call, *handle, {}, {}, {}};
  const auto& arguments = handle->schema().arguments();
  bound.values.assign(arguments.size(), nullptr);
  if (call.args.items.size() > arguments.size()) {
    return absl::InvalidArgumentError(absl::StrCat("too many arguments for aten::", call.name));
  }
  for (size_t i = 0; i < call.args.items.size(); ++i) bound.values[i] = &call.args.items[i];
  for (size_t k = 0; k < call.kwargs.items.size(); ++k) {
    const std::string& key = call.kwargs.keys[k].text;
    size_t i = 0;
    while (i < arguments.size() && arguments[i].name() != key) ++i;
    if (i == arguments.size() || bound.values[i] != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("aten::", call.name, " has no such keyword"));
    }
    bound.values[i] = &call.kwargs.items[k];
  }
  RETURN_IF_ERROR(CollectTensors(call.args, bound));
  RETURN_IF_ERROR(CollectTensors(call.kwargs, bound));
  return bound;
}

absl::StatusOr<std::vector<ReturnedList>> Run(const BoundCall& bound, const ArgumentRules& rules) {
  StackBuilder builder(bound, rules);
  absl::StatusOr<torch::jit::Stack> stack = absl::InternalError("");
  RETURN_IF_ERROR(CatchTorch([&] {
    stack = builder.Build();
    if (stack.ok()) bound.handle.callBoxed(&*stack);
  }));
  RETURN_IF_ERROR(stack.status());
  std::vector<ReturnedList> returned;
  for (const c10::IValue& value : *stack) {
    ReturnedList list;
    list.is_list = value.isTensorList();
    if (list.is_list) {
      for (const at::Tensor& tensor : value.toTensorVector()) {
        ASSIGN_OR_RETURN(Returned item, ReturnedOf(tensor, builder));
        list.items.push_back(std::move(item));
      }
    } else {
      ASSIGN_OR_RETURN(Returned item, ReturnedOf(value, builder));
      list.items.push_back(std::move(item));
    }
    returned.push_back(std::move(list));
  }
  return returned;
}

absl::StatusOr<std::optional<int64_t>> ReturnedBytes(const BoundCall& bound) {
  ArgumentRules rules;
  rules.device = at::kMeta;
  rules.tensor = [](const Value& value) {
    const bool host = value.kind == Value::Kind::kHost;
    const auto options = at::TensorOptions().device(at::kMeta).dtype(host ? value.host.scalar_type()
                                                                          : value.tensor.dtype);
    if (host) return at::empty(value.host.sizes(), options);
    return at::empty_strided(value.tensor.shape, value.tensor.stride, options);
  };
  auto returned = Run(bound, rules);
  if (absl::IsUnimplemented(returned.status())) return std::nullopt;
  RETURN_IF_ERROR(returned.status());
  int64_t bytes = 0;
  for (const ReturnedList& list : *returned) {
    for (const Returned& item : list.items) {
      if (!item.tensor.defined()) continue;
      int64_t more = 0;
      if (__builtin_mul_overflow(item.tensor.numel(), item.tensor.element_size(), &more) ||
          __builtin_add_overflow(bytes, more, &bytes)) {
        return absl::ResourceExhaustedError("CUDA out of memory.");
      }
    }
  }
  return bytes;
}

}  // namespace tritonrl::device
