// Stores into attributes.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {

void Interpreter::Put(Value* slot, Value value) {
  if (loops_ > 0 && arena_.StateHash(*slot) != arena_.StateHash(value)) ++changes_;
  *slot = value;
}

// Whether a chain of objects goes on growing from pass to pass.
bool Interpreter::HoldsFromEarlierPass(Value value, int depth) const {
  constexpr int kDepth = 3;
  auto any = [&](const std::vector<Value>& values) {
    return std::any_of(values.begin(), values.end(),
                       [&](Value v) { return HoldsFromEarlierPass(v, depth + 1); });
  };
  if (value == nullptr || depth > kDepth) return false;
  if (const auto* instance = AsInstance(value))
    return instance->pass >= passes_.first && instance->pass < passes_.current;
  if (const auto* choice = AsUnion(value)) return any(choice->options);
  if (const auto* list = AsList(value)) return any(list->items);
  if (const auto* bound = As<BoundObject>(value, ObjectKind::kBound))
    return HoldsFromEarlierPass(bound->self, depth + 1);
  if (const auto* partial = As<PartialObject>(value, ObjectKind::kPartial))
    return any(partial->positional);
  if (const auto* dict = AsDict(value)) {
    return HoldsFromEarlierPass(dict->other, depth + 1) ||
           std::any_of(dict->items.begin(), dict->items.end(), [&](const auto& item) {
             return HoldsFromEarlierPass(item.second, depth + 1);
           });
  }
  return false;
}

void Interpreter::PutAttribute(InstanceObject* instance, Value* slot, absl::string_view name,
                               Value value) {
  if (loops_ == 0 || passes_.current == 0 || instance->pass < passes_.current ||
      HoldsFromEarlierPass(value, 0))
    return Put(slot, value);
  passes_.made += arena_.StateHash(value) * (2 * static_cast<uint64_t>(ast_->Intern(name)) + 1);
  *slot = value;
}

void Interpreter::StoreInInstance(InstanceObject* instance, absl::string_view name, Value value,
                                  int line) {
  if (name == "__class__") Forbid(line, "__class__", "changes what an object is");
  std::string unused;
  auto* property = instance->type == nullptr
                       ? nullptr
                       : AsFunction(ClassAttribute(instance->type, name, &unused));
  if (property != nullptr && property->setter != nullptr) {
    CallFunction(property->setter, {.positional = {instance, value}, .line = line});
    return;
  }
  if (instance->type != nullptr) {
    auto* descriptor = AsInstance(ClassAttribute(instance->type, name, &unused));
    Value setter = descriptor == nullptr || descriptor->type == nullptr
                       ? nullptr
                       : ClassAttribute(descriptor->type, "__set__", &unused);
    if (setter != nullptr) {
      Call(BindMethod(setter, descriptor, descriptor->type),
           {.positional = {instance, value}, .line = line});
      return;
    }
  }
  Value& slot = instance->attributes[std::string(name)];
  if (slot == nullptr && Weak(instance)) {
    // Otherwise it is the class's.
    Value inherited =
        instance->type == nullptr ? nullptr : ClassAttribute(instance->type, name, &unused);
    if (AsHost(inherited) != nullptr) slot = inherited;
  }
  PutAttribute(instance, &slot, name, Weak(instance) ? arena_.Join(slot, value) : value);
}

void Interpreter::StoreAttribute(Value object, absl::string_view name, Value value, int line) {
  if (auto* any = AsUnion(object)) {
    ++undecided_;
    for (Value option : any->options) StoreAttribute(option, name, value, line);
    --undecided_;
    return;
  }
  if (auto* instance = AsInstance(object)) {
    StoreInInstance(instance, name, value, line);
  } else if (auto* module = AsModule(object)) {
    if (name == "forward" || name == "__call__") {
      Forbid(line, absl::StrCat(module->name, ".", name), "replaces a library's method");
      return;
    }
    Value& slot = module->attributes[std::string(name)];
    Put(&slot, Weak(module) ? arena_.Join(slot, value) : value);
  } else if (auto* type = AsClass(object)) {
    const int number = ast_->Intern(name);
    if (auto* function = AsFunction(value); function != nullptr && function->owner == nullptr)
      function->owner = type;
    if (Value* found = type->body->Find(number)) {
      Put(found, Weak(type) ? arena_.Join(*found, value) : value);
    } else {
      std::string unused;
      Value inherited = Weak(type) ? ClassAttribute(type, name, &unused) : nullptr;
      type->body->variables.emplace_back(number, arena_.Join(inherited, value));
    }
  } else if (auto* symbol = AsSymbol(object)) {
    const std::string full = absl::StrCat(symbol->name, ".", name);
    if (!IsPermittedSetting(full)) Forbid(line, full, "assigns to an attribute of a library");
  } else if (auto* tensor = AsTensor(object)) {
    if (name == "data") {
      AddTo(&tensor->storages, Reachable(value));
    } else if (name != "grad" && name != "requires_grad") {
      for (int storage : tensor->storages) AddTo(&storages_[storage].sources, Reachable(value));
    }
  } else if (AsKernel(object) != nullptr) {
    Forbid(line, absl::StrCat(AsKernel(object)->function->name, ".", name),
           "changes a compiled kernel object");
  } else if (AsFunction(object) != nullptr || object->kind == ObjectKind::kBound ||
             object->kind == ObjectKind::kPartial || AsList(object) != nullptr) {
    Hide(value, line);  // found again through the attribute
  } else if (AsHost(object) != nullptr && !absl::StartsWith(name, "__")) {
    CallCallbacks({.positional = {value}, .line = line});  // an object of a library's
  } else if (object->kind == ObjectKind::kUnknown ||
             (AsHost(object) != nullptr && absl::StartsWith(name, "__"))) {
    Forbid(line, std::string(name), "is set on an object that cannot be followed");
  }
}

}  // namespace tritonrl::lint
