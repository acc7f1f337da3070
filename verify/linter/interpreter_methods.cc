// Calls of methods that are not functions of the program.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "verify/linter/interpreter.h"
#include "verify/linter/kernel_analysis.h"

namespace tritonrl::lint {

Value Interpreter::CallMethod(MethodObject* method, const Args& args) {
  Value self = method->self;
  switch (self->kind) {
    case ObjectKind::kTensor:
      return CallTensorMethod(AsTensor(self), method->name, args);
    case ObjectKind::kList:
      return CallListMethod(AsList(self), method->name, args);
    case ObjectKind::kDict:
      return CallDictMethod(AsDict(self), method->name, args);
    case ObjectKind::kInstance:
      return CallInstanceMethod(AsInstance(self), method->name, args);
    case ObjectKind::kClass:
      return ApplyFunction(AsClass(self), args);
    case ObjectKind::kKernel: {
      KernelObject* kernel = AsKernel(self);
      if (method->name == "run") return LaunchKernel(kernel, args.Get(-1, "grid"), args);
      if (method->name == "__getitem__")
        return GetItem(kernel, args.Get(0, "grid"), nullptr, args.line);
      if (method->name == "warmup") return kernel;  // what it compiled to, to be launched later
      return method->name == "__call__" ? None() : arena_.Host();
    }
    case ObjectKind::kModule:
      return CallModuleMethod(AsModule(self), method->name, args);
    case ObjectKind::kHost: {
      CallCallbacks(args);
      if (absl::StartsWith(method->name, "__") && AnyTensor(args))
        return Elementwise(method->name, args.All(), args.line);
      StorageSet sources = SourcesOf(args);
      AddTo(&sources, Reachable(self));
      if (method->name == "numel" || method->name == "count" || method->name == "index")
        return arena_.Int(sources);
      return arena_.Host(sources);
    }
    default: {
      if (method->name == "register_kernel") return RegisterKernel(method, args);
      auto* property = AsFunction(self);
      if (auto* function = AsFunction(args.Get(0, ""));
          property != nullptr && function != nullptr) {
        if (method->name == "setter") property->setter = function;
        if (method->name == "deleter") property->deleter = function;
        if (method->name == "setter" || method->name == "deleter") return property;
      }
      if (method->name == "__get__" || method->name == "cache_clear" ||
          method->name == "cache_info")
        return self;
      if (IsCallable(self)) CallWithAnything(self, SourcesOf(args), args.line);  // f.run(), f.map()
      return CallUnknown(self, args);
    }
  }
}

Value Interpreter::RegisterKernel(MethodObject* method, const Args& args) {
  Value function = args.Get(1, "fn");
  if (function == nullptr) {  // a decorator
    auto* decorator = arena_.New<PartialObject>();
    decorator->function = method;
    decorator->positional = {args.Get(0, "device_types")};
    return decorator;
  }
  const std::string* device = ConstantString(args.Get(0, "device_types"));
  auto* op = AsFunction(method->self);
  if (op != nullptr && (device == nullptr || *device != "cpu")) op->also.push_back(function);
  return function;
}

Value Interpreter::CallInstanceMethod(InstanceObject* instance, absl::string_view name,
                                      const Args& args) {
  if (instance->type == nullptr) {  // autograd's ctx
    for (Value value : args.All()) {
      instance->attributes[absl::StrCat("saved", instance->attributes.size())] = value;
    }
    return None();
  }
  if ((name == "_replace" || name == "_asdict") && IsNamedTuple(instance)) {
    Args with_self = args;
    with_self.positional.insert(with_self.positional.begin(), instance);
    const std::string same = name == "_replace" ? "dataclasses.replace" : "dataclasses.asdict";
    if (Value value = DataclassesModule(same, with_self)) return value;
  }
  const std::string* key = ConstantString(args.Get(0, "name"));
  if ((name == "register_buffer" || name == "register_parameter" || name == "add_module" ||
       name == "register_module") &&
      args.positional.size() + args.keyword.size() >= 2) {
    Value value = args.Get(1, name == "register_buffer" ? "tensor"
                              : name == "add_module"    ? "module"
                                                        : "param");
    Value& slot = instance->attributes[key == nullptr ? UnknownName(args.Get(0, "name")) : *key];
    slot = key == nullptr || Weak(instance) ? arena_.Join(slot, value) : value;
    return None();
  }
  if (absl::StartsWith(name, "register_") && absl::StrContains(name, "hook")) {
    Forbid(args.line, std::string(name), "hides code in a hook");
    return None();
  }
  if (name == "get_buffer" || name == "get_parameter" || name == "get_submodule") {
    return key != nullptr ? GetAttribute(instance, *key, args.line)
                          : arena_.JoinAll(AttributeValues(instance));
  }
  const std::vector<Value> values = AttributeValues(instance);
  if (name == "parameters" || name == "buffers" || name == "children" || name == "modules" ||
      name == "state_dict") {
    return arena_.List(values, false);
  }
  const bool is_dict = DerivesFrom(instance->type, "torch.nn.ModuleDict") ||
                       DerivesFrom(instance->type, "torch.nn.ParameterDict");
  if (is_dict && name == "values") return arena_.List(values, false);
  if (is_dict && name == "keys") return arena_.List({arena_.Host()}, false);
  if (absl::StartsWith(name, "named_") || (is_dict && name == "items")) {
    Value joined = arena_.JoinAll(values);
    return arena_.List({arena_.List({arena_.Host(), joined == nullptr ? arena_.Host() : joined})},
                       false);
  }
  if (name == "to" || name == "cuda" || name == "eval" || name == "train" || name == "half" ||
      name == "float" || name == "bfloat16" || name == "requires_grad_" || name == "__enter__" ||
      name == "double") {
    return instance;
  }
  if (name == "apply" && phase_ == Phase::kForward) {
    CallCallbacks(args);
    return instance;
  }
  if (name == "__exit__" || name == "extra_repr" || name == "_check_input_dim" ||
      name == "zero_grad" || name == "load_state_dict")
    return None();
  for (Value value : args.All()) {
    if (HoldsTensor(value)) {
      Unresolved(std::string(name), args.line);
      break;
    }
  }
  return arena_.Unknown(SourcesOf(args));
}

Value Interpreter::ApplyFunction(ClassObject* type, const Args& args) {
  InstanceObject* context = arena_.New<InstanceObject>();
  std::string symbol;
  Value forward = ClassAttribute(type, "forward", &symbol);
  if (forward == nullptr) return CallUnknown(type, args);
  std::string unused;
  Value setup = ClassAttribute(type, "setup_context", &unused);
  Args with_context = args;
  if (setup == nullptr) with_context.positional.insert(with_context.positional.begin(), context);
  Value output = Call(forward, with_context);
  if (setup != nullptr) {
    Call(setup, {.positional = {context, arena_.List(args.positional), output}, .line = args.line});
  }
  return output;
}

Value Interpreter::CallModuleMethod(ModuleObject* module, absl::string_view name,
                                    const Args& args) {
  if (name == "forward" || name == "__call__") return CallModule(module, args);
  if (absl::StartsWith(name, "register_") && absl::StrContains(name, "hook")) {
    Forbid(args.line, std::string(name), "hides code in a hook");
    return None();
  }
  if (name == "append" || name == "insert" || name == "add_module" || name == "extend") {
    for (Value value : args.positional) {
      name == "extend" ? AddItems(value, &module->children, &module->exact)
                       : module->children.push_back(value);
    }
    if (Weak(module) || name == "insert") module->exact = false;
    return module;
  }
  if (name == "parameters" || name == "buffers" || name == "state_dict") {
    return arena_.List({InputTensor()}, false);
  }
  if (name == "children" || name == "modules" || name == "values")
    return arena_.List(module->children, false);
  if (name == "apply" && phase_ == Phase::kForward) CallCallbacks(args);
  if (name == "items" || name == "named_children" || name == "named_modules") {
    Value child = arena_.JoinAll(module->children);
    return arena_.List({arena_.List({arena_.Host(), child == nullptr ? arena_.Host() : child})},
                       false);
  }
  if (name == "named_parameters")
    return arena_.List({arena_.List({arena_.Host(), InputTensor()})}, false);
  for (Value value : args.All()) {
    if (HoldsTensor(value))
      return Compute(absl::StrCat(module->name, ".", name), args.line, SourcesOf(args));
  }
  return module;  // to, eval, half, ...
}

}  // namespace tritonrl::lint
