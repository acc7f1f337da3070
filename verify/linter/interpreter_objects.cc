// Attributes, classes and instances.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {
namespace {

// What is known of the shape of a library module's parameter or buffer.
Shape ParameterShape(absl::string_view name) {
  if (name == "num_batches_tracked") return std::vector<int64_t>{};
  return std::nullopt;
}

// Numbers and flags that library modules keep of their constructor's arguments.
bool IsModuleSetting(absl::string_view name) {
  if (absl::StartsWith(name, "_")) return false;
  for (absl::string_view ending : {"_features", "_channels", "_size", "_dim", "_shape", "_mode"}) {
    if (absl::EndsWith(name, ending)) return true;
  }
  return absl::StartsWith(name, "num_") || Is(kModuleSetting, name);
}

}  // namespace

Value Interpreter::GetAttribute(Value object, absl::string_view name, int line) {
  if (auto* any = AsUnion(object)) {
    Value joined = nullptr;
    for (Value option : any->options) {
      if (IsNone(option)) continue;
      joined = arena_.Join(joined, GetAttribute(option, name, line));
    }
    return joined == nullptr ? arena_.Host() : joined;
  }
  switch (object->kind) {
    case ObjectKind::kTensor:
      return TensorAttribute(object, name);
    case ObjectKind::kSymbol:
      return SymbolAttribute(AsSymbol(object)->name, name, line);
    case ObjectKind::kInstance:
      return InstanceAttribute(AsInstance(object), name, line);
    case ObjectKind::kModule:
      return ModuleAttribute(AsModule(object), name);
    case ObjectKind::kKernel:
      return KernelAttribute(AsKernel(object), name);
    case ObjectKind::kClass:
      return AttributeOfClass(AsClass(object), name);
    case ObjectKind::kSuper:
      return AttributeOfSuper(static_cast<SuperObject*>(object), name);
    case ObjectKind::kLauncher:
      return name == "__call__" ? object : arena_.Method(object, name);
    case ObjectKind::kFunction:
    case ObjectKind::kBound:
    case ObjectKind::kPartial:
      if (name == "__call__") return object;
      if (auto* property = AsFunction(object);
          property != nullptr && property->binding == FunctionObject::Binding::kProperty)
        return arena_.Method(object, name);  // y.setter
      if (name == "register_kernel") return arena_.Method(object, name);
      if (absl::StartsWith(name, "register_"))
        return arena_.Symbol("functools.wraps()");  // of custom operators
      if (absl::StartsWith(name, "__")) return arena_.Host();
      return arena_.Method(object, name);
    case ObjectKind::kUnknown:
      return arena_.UnknownLike(object);
    default:
      return arena_.Method(object, name);
  }
}

Value Interpreter::AttributeOfClass(ClassObject* type, absl::string_view name) {
  std::string symbol;
  if (name == "apply" && DerivesFrom(type, "torch.autograd.Function"))
    return arena_.Method(type, name);
  Value found = ClassAttribute(type, name, &symbol);
  if (found != nullptr) {
    auto* function = AsFunction(found);
    const bool is_class_method =
        function != nullptr && function->binding == FunctionObject::Binding::kClass;
    return is_class_method ? BindMethod(found, type, type) : found;
  }
  if (!symbol.empty()) return arena_.Symbol(absl::StrCat(symbol, ".", name));
  return arena_.Host();
}

Value Interpreter::AttributeOfSuper(SuperObject* super, absl::string_view name) {
  // What follows in the order of the object's own class, which may bring classes in between.
  auto* self = AsInstance(super->self);
  std::vector<Value> order =
      SearchOrder(self != nullptr && self->type != nullptr ? self->type : super->after);
  auto after = std::find(order.begin(), order.end(), super->after);
  if (after == order.end()) {
    order = SearchOrder(super->after);
    after = order.begin();
  }
  const int number = ast_->Intern(name);
  for (auto it = after + 1; it < order.end(); ++it) {
    if (auto* type = AsClass(*it)) {
      if (Value* found = type->body->Find(number)) return BindMethod(*found, super->self, type);
    } else if (auto* symbol = AsSymbol(*it)) {
      return arena_.Symbol(absl::StrCat(symbol->name, ".", name));
    }
  }
  return arena_.Symbol(absl::StrCat("builtins.object.", name));
}

Value Interpreter::SymbolAttribute(const std::string& symbol, absl::string_view name, int line) {
  if (symbol == "torch.device()") {
    if (name == "type") return arena_.Constant(std::string("cuda"));
    return arena_.Host();
  }
  if (symbol.size() > kImportModule.size() && absl::StartsWith(symbol, kImportModule)) {
    if (name == "__version__") return arena_.Host();
    Forbid(line, std::string(kImportModule), WhyForbidden(kImportModule));
    return arena_.Unknown();
  }
  if (const std::string module = ReexportedModule(symbol, name); !module.empty()) {
    if (IsForbiddenModule(module))
      Forbid(line, absl::StrCat(symbol, ".", name), "is a module that a kernel has no use for");
    return arena_.Symbol(module);
  }
  if (absl::StartsWith(symbol, "triton") && IsForbiddenModule(absl::StrCat(symbol, ".", name)))
    Forbid(line, absl::StrCat(symbol, ".", name), "is a module that a kernel has no use for");
  if (absl::StartsWith(symbol, "triton.knobs") && absl::StrContains(name, "hook"))
    Forbid(line, absl::StrCat(symbol, ".", name), "hides code in a hook");
  if (symbol == "builtins" && Is(kForbiddenBuiltin, name))
    Forbid(line, std::string(name), "is refused in a candidate");
  std::string full = absl::StrCat(symbol, ".", name);
  if (absl::StartsWith(full, "torch.ops.")) {
    budget_.Spend(16 * custom_ops_.size());
    for (const auto& [op, function] : custom_ops_) {
      if (full == absl::StrCat("torch.ops.", op) ||
          full == absl::StrCat("torch.ops.", op, ".default"))
        return function;
      if (absl::StartsWith(op, absl::StrCat(name, ".")) && symbol == "torch.ops")
        return arena_.Symbol(full);
    }
  }
  if (IsForbiddenFunction(full)) {
    Forbid(line, full, WhyForbidden(full));
    return arena_.Unknown();
  }
  if (absl::StartsWith(full, "torch.") && TorchUseOf(full) == TorchUse::kForbidden &&
      phase_ == Phase::kForward) {
    // Mentioned on forward's path, whatever it is then used for.
    Find(LintRule::kTorchCompute, line, full,
         absl::StrCat(full, " does work outside the program's own kernels"));
  }
  return arena_.Symbol(std::move(full));
}

Value Interpreter::KernelAttribute(KernelObject* kernel, absl::string_view name) {
  if (name == "fn") return kernel;  // an autotuner's inner kernel
  if (absl::StrContains(name, "hook"))
    Forbid(kernel->function->node->line, absl::StrCat(kernel->function->name, ".", name),
           "hides code in a hook");
  return arena_.Method(kernel, name);
}

Value Interpreter::ClassAttribute(ClassObject* type, absl::string_view name, std::string* symbol) {
  const int number = ast_->Intern(name);
  for (Value base : SearchOrder(type)) {
    if (auto* parent = AsClass(base)) {
      budget_.SpendSearch(1, parent->body->variables.size());
      if (Value* found = parent->body->Find(number)) return *found;
    } else if (auto* library = AsSymbol(base); library != nullptr && symbol->empty()) {
      *symbol = library->name;
    }
  }
  return nullptr;
}

bool Interpreter::DerivesFrom(ClassObject* type, absl::string_view symbol) {
  const std::vector<Value>& order = SearchOrder(type);
  return std::any_of(order.begin(), order.end(), [symbol](Value base) {
    auto* library = AsSymbol(base);
    return library != nullptr && library->name == symbol;
  });
}

Value Interpreter::BindMethod(Value found, Value self, Value type) {
  auto* function = AsFunction(found);
  if (auto* descriptor = AsInstance(found); descriptor != nullptr && descriptor->type != nullptr) {
    std::string unused;
    Value getter = ClassAttribute(descriptor->type, "__get__", &unused);
    if (AsFunction(getter) == nullptr) return found;
    return Call(BindMethod(getter, descriptor, descriptor->type),
                {.positional = {self, type}, .line = AsFunction(getter)->node->line});
  }
  if (function == nullptr) return found;
  switch (function->binding) {
    case FunctionObject::Binding::kStatic:
      return found;
    case FunctionObject::Binding::kProperty:
      return Call(found, {.positional = {self}, .line = function->node->line});
    default: {
      auto* bound = arena_.New<BoundObject>();
      bound->function = found;
      bound->self = function->binding == FunctionObject::Binding::kClass ? type : self;
      return bound;
    }
  }
}

Value Interpreter::InstanceAttribute(InstanceObject* instance, absl::string_view name, int line) {
  // What was set under a name that is not known, but may be this one.
  Value made = nullptr;
  for (auto any = instance->attributes.lower_bound("*");
       any != instance->attributes.end() && any->first[0] == '*'; ++any) {
    if (absl::StartsWith(name, any->first.substr(1))) made = arena_.Join(made, any->second);
  }
  auto it = instance->attributes.find(std::string(name));
  if (it != instance->attributes.end()) return arena_.Join(it->second, made);
  if (instance->type == nullptr ||
      ((name == "_replace" || name == "_asdict") && IsNamedTuple(instance)))
    return arena_.Method(instance, name);
  if (name == "__class__") return instance->type;
  std::string symbol;
  if (Value found = ClassAttribute(instance->type, name, &symbol))
    return BindMethod(found, instance, instance->type);
  std::string unused;
  if (Value getter = ClassAttribute(instance->type, "__getattr__", &unused)) {
    Args args{.positional = {arena_.Constant(std::string(name))}, .line = line};
    return Call(BindMethod(getter, instance, instance->type), args);
  }
  if (!symbol.empty() && IsParameterName(name)) {
    Value parameter = InputTensor(ParameterShape(name));
    instance->attributes.emplace(std::string(name), parameter);
    return parameter;
  }
  if (name == "training") return arena_.Host();
  if (made != nullptr) return made;
  if (absl::StartsWith(symbol, "torch.nn.") && IsModuleSetting(name)) return arena_.Host();
  return arena_.Method(instance, name);
}

Value Interpreter::ModuleAttribute(ModuleObject* module, absl::string_view name) {
  auto it = module->attributes.find(std::string(name));
  if (it != module->attributes.end()) return it->second;
  if (IsParameterName(name)) {
    Value parameter = InputTensor(ParameterShape(name));
    module->attributes.emplace(std::string(name), parameter);
    return parameter;
  }
  if (name == "out_proj") {
    auto* inner = arena_.New<ModuleObject>();
    inner->name = "torch.nn.Linear";
    module->attributes.emplace("out_proj", inner);
    return inner;
  }
  if (name == "training") return arena_.Host();
  if (IsModuleSetting(name)) return arena_.Host();
  return arena_.Method(module, name);
}

std::vector<Value> Interpreter::AttributeValues(InstanceObject* instance) {
  budget_.Spend(2 * instance->attributes.size());
  std::vector<Value> values;
  for (const auto& [name, value] : instance->attributes) values.push_back(value);
  return values;
}

const std::vector<std::string>& Interpreter::FieldsOf(ClassObject* type) {
  budget_.Spend(8 * type->fields.size());
  if (!type->fields.empty()) return type->fields;
  if (!type->annotated.has_value()) {
    type->annotated.emplace();
    const Node* body = type->node == nullptr ? nullptr : type->node->Get(Field::kBody);
    for (const Node* statement : body == nullptr ? std::vector<Node*>() : body->children) {
      const Node* assignment = statement->children.empty() ? nullptr : statement->children[0];
      if (assignment == nullptr || assignment->kind != Kind::kAssignment) continue;
      const Node* left = assignment->Get(Field::kLeft);
      if (left != nullptr && left->kind == Kind::kIdentifier &&
          assignment->Get(Field::kType) != nullptr) {
        type->annotated->emplace_back(left->text);
      }
    }
  }
  budget_.Spend(8 * type->annotated->size());
  return *type->annotated;
}

bool Interpreter::IsNamedTuple(InstanceObject* instance) {
  if (instance->type == nullptr) return false;
  for (Value base : instance->type->bases) {
    auto* parent = AsClass(base);
    if (parent != nullptr && !parent->fields.empty()) return true;
  }
  return !instance->type->fields.empty() || DerivesFrom(instance->type, "typing.NamedTuple");
}

Value Interpreter::Instantiate(ClassObject* type, const Args& args) {
  auto* instance = arena_.New<InstanceObject>();
  instance->type = type;
  instance->made_again = phase_ == Phase::kForward || loops_ > 0;
  instance->pass = passes_.all;
  instances_.push_back(instance);
  std::string symbol;
  if (Value constructor = ClassAttribute(type, "__new__", &symbol)) {
    Args with_class = args;
    with_class.positional.insert(with_class.positional.begin(), type);
    auto* made = AsInstance(Call(constructor, with_class));
    if (made != nullptr && made->type != type) return made;  // Python does not run __init__ then
    if (made != nullptr) instance = made;
  }
  Value init = ClassAttribute(type, "__init__", &symbol);
  if (init != nullptr) {
    Call(BindMethod(init, instance, type), args);
    return instance;
  }
  budget_.SpendSearch(FieldsOf(type).size(), args.keyword.size());
  // Dataclasses, named tuples: fields in the order of their annotations.
  size_t position = 0;
  for (const std::string& field : FieldsOf(type)) {
    Value given = args.Get(static_cast<int>(position++), field);
    if (given != nullptr) instance->attributes[field] = given;
  }
  if (position == 0) {
    int index = 0;
    for (Value value : args.positional) instance->attributes[absl::StrCat("args", index++)] = value;
    for (const auto& [name, value] : args.keyword) instance->attributes[name] = value;
    if (args.rest != nullptr) instance->attributes["*"] = args.rest;
  }
  if (Value after = ClassAttribute(type, "__post_init__", &symbol))
    Call(BindMethod(after, instance, type), {.rest = arena_.Unknown(), .line = args.line});
  return instance;
}

Value Interpreter::Super(const Args& args) {
  auto* super = arena_.New<SuperObject>();
  if (args.positional.size() >= 2) {
    super->after = AsClass(args.positional[0]);
    super->self = args.positional[1];
  } else if (frame().function != nullptr) {
    super->after = frame().function->owner;
    super->self = frame().self;
  }
  if (super->after == nullptr) return arena_.Unknown();
  return super;
}

}  // namespace tritonrl::lint
