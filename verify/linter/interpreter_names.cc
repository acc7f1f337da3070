// Names and the targets of assignments.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {

Value Interpreter::Lookup(const Node* identifier) {
  Value value = LookupFrom(frame().scope, identifier->name);
  if (auto* symbol = AsSymbol(value); symbol != nullptr &&
                                      absl::StartsWith(symbol->name, "builtins.") &&
                                      Is(kForbiddenBuiltin, identifier->text)) {
    Forbid(identifier->line, std::string(identifier->text), "is refused in a candidate");
  }
  return value;
}

Value Interpreter::LookupFrom(Scope* scope, int name) {
  bool innermost = true;
  auto has = [name](const std::vector<int>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (Scope* s = scope; s != nullptr; s = s->parent) {
    if (s->is_class && !innermost) continue;
    if (innermost) budget_.SpendSearch(1, s->globals.size());
    if (innermost && has(s->globals)) {
      s = module_scope_;
    }
    budget_.SpendSearch(1, s->variables.size());
    if (Value* found = s->Find(name)) return *found;
    innermost = false;
    if (s == module_scope_) break;
  }
  const std::string& text = ast_->NameOf(name);
  if (!wildcards_.empty() && !Is(kPythonBuiltin, text)) {
    return arena_.Symbol(absl::StrCat(wildcards_.back(), ".", text));
  }
  if (text == "__name__") return arena_.Constant(std::string("candidate"));
  return arena_.Symbol(absl::StrCat("builtins.", text));
}

void Interpreter::Bind(int name, Value value) {
  Scope* scope = frame().scope;
  budget_.SpendSearch(1, scope->variables.size() + scope->globals.size() + scope->nonlocals.size());
  auto has = [name](const std::vector<int>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  bool weak = false;
  if (has(scope->globals)) {
    weak = undecided_ > 0 || early_exit_ > 0;
    scope = module_scope_;
  } else if (has(scope->nonlocals)) {
    weak = undecided_ > 0 || early_exit_ > 0;
    for (Scope* s = scope->parent; s != nullptr; s = s->parent) {
      if (!s->is_class && s->Find(name) != nullptr) {
        scope = s;
        break;
      }
    }
  }
  if (scope == frame().scope && frame().tries > 0) frame().tried.emplace_back(name, value);
  if (Value* found = scope->Find(name)) {
    Value bound = weak ? arena_.Join(*found, value) : value;
    scope == frame().scope ? void(*found = bound) : Put(found, bound);
  } else {
    scope->variables.emplace_back(name, value);
  }
}

void Interpreter::Store(const Node* target, Value value) {
  if (target == nullptr) return;
  switch (target->kind) {
    case Kind::kIdentifier:
      Bind(target->name, value);
      return;
    case Kind::kAttribute: {
      const Node* attribute = target->Get(Field::kAttribute);
      Value object = Eval(target->Get(Field::kObject));
      if (attribute != nullptr) StoreAttribute(object, attribute->text, value, target->line);
      return;
    }
    case Kind::kSubscript:
      StoreSubscript(target, value);
      return;
    case Kind::kPatternList:
    case Kind::kTuplePattern:
    case Kind::kListPattern:
    case Kind::kTuple:
    case Kind::kList:
    case Kind::kExpressionList: {
      std::vector<const Node*> targets(target->children.begin(), target->children.end());
      Unpack(targets, value);
      return;
    }
    case Kind::kListSplatPattern:
    case Kind::kListSplat:
      if (!target->children.empty()) Store(target->children[0], arena_.List({value}, false));
      return;
    default:
      Unpack({target->children.begin(), target->children.end()}, value);
  }
}

void Interpreter::Unpack(const std::vector<const Node*>& targets, Value value) {
  std::vector<Value> items;
  bool exact = true;
  AddItems(value, &items, &exact);
  const bool splat = std::any_of(targets.begin(), targets.end(), [](const Node* t) {
    return t->kind == Kind::kListSplatPattern || t->kind == Kind::kListSplat;
  });
  if (exact && !splat && items.size() == targets.size()) {
    for (size_t i = 0; i < targets.size(); ++i) Store(targets[i], items[i]);
    return;
  }
  Value element = items.empty() ? arena_.Host() : arena_.JoinAll(items);
  for (const Node* target : targets) Store(target, element);
}

void Interpreter::StoreSubscript(const Node* target, Value value) {
  Value container = Eval(target->Get(Field::kValue));
  std::vector<Value> indices;
  for (const Node* child : target->children) {
    if (child->field == Field::kSubscript) indices.push_back(EvalIndex(child));
  }
  StoreItem(container, indices.size() == 1 ? indices[0] : arena_.List(indices), value,
            target->line);
}

void Interpreter::StoreItem(Value container, Value index, Value value, int line) {
  if (auto* any = AsUnion(container)) {
    ++undecided_;
    for (Value option : any->options) StoreItem(option, index, value, line);
    --undecided_;
    return;
  }
  if (auto* tensor = AsTensor(container)) {
    // Writing elements is a copy; choosing them by a tensor is a computation.
    if (HoldsTensor(index)) Compute("index assignment by a tensor", line, tensor->storages);
    if (IsPicked(value)) Compute("index by single elements", line, tensor->storages);
    for (int storage : tensor->storages) AddTo(&storages_[storage].sources, Reachable(value));
  } else if (auto* list = AsList(container)) {
    const std::optional<int64_t> position = ConstantInt(index);
    const int64_t size = list->items.size();
    if (position.has_value() && list->exact && *position < size && *position >= -size) {
      Value& item = list->items[*position < 0 ? *position + size : *position];
      Put(&item, Weak(list) ? arena_.Join(item, value) : value);
    } else {
      list->items.push_back(value);
      if (AsList(value) != nullptr) AddItems(value, &list->items, &list->exact);  // list[1:] = ...
      list->exact = false;
    }
  } else if (auto* dict = AsDict(container)) {
    const std::string key = ConstantKey(index);
    if (key.empty()) {
      dict->other = arena_.Join(dict->other, value);
      if (AsHost(index) != nullptr && !AsHost(index)->addresses.empty() &&
          phase_ == Phase::kForward) {
        Find(LintRule::kHardCoded, line, "cache by address",
             "results are kept by the address or identity of a tensor and would be returned for "
             "other contents");
      }
      return;
    }
    PutItem(dict, key, value);
  } else if (auto* symbol = AsSymbol(container)) {
    const std::string* key = ConstantString(index);
    if (symbol->name == "os.environ" && key != nullptr && IsPermittedVariable(*key)) return;
    Forbid(line, symbol->name, "assigns into a library or the environment");
  } else if (AsInstance(container) != nullptr) {
    Args args{.positional = {index, value}, .line = line};
    Call(GetAttribute(container, "__setitem__", line), args);
  } else if (AsKernel(container) != nullptr || AsClass(container) != nullptr) {
    Forbid(line, "[]=", "assigns into a kernel or a class");
  }
}

void Interpreter::ExecAugmented(const Node* node) {
  const Node* left = node->Get(Field::kLeft);
  const Node* right = node->Get(Field::kRight);
  const Node* op = node->Get(Field::kOperator);
  if (left == nullptr || right == nullptr || op == nullptr) return;
  absl::string_view name = op->text;
  absl::ConsumeSuffix(&name, "=");
  Value old_value = Eval(left);
  Value added = Eval(right);
  if (auto* list = AsList(old_value); list != nullptr && name == "+") {
    AddItems(added, &list->items, &list->exact);
    if (Weak(list)) list->exact = false;
    return;
  }
  if (auto* list = AsList(old_value); list != nullptr && name == "*") {
    list->exact = false;
    return;
  }
  if (auto* dict = AsDict(old_value); dict != nullptr && name == "|") {
    CallDictMethod(dict, "update", {.positional = {added}, .line = node->line});
    return;
  }
  Store(left, Binary(name, old_value, added, node->line));
}

}  // namespace tritonrl::lint
