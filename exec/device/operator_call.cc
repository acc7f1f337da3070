#include "exec/device/operator_call.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/device/operator_arguments.h"
#include "exec/device/torch_errors.h"

namespace tritonrl::device {
namespace {

absl::StatusOr<Returned> ReturnedOf(const c10::IValue& value, const ArgumentBuilder& builder) {
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
  ArgumentBuilder builder(bound, rules);
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
