// Code of the program that runs without a call of it being seen: Python and libraries call methods,
// properties and callbacks of what they are given, at once or later. All of it is run here as part
// of forward, with arguments that may be anything.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {
namespace {

constexpr int kMaxEscapeDepth = 3;

// Bases that call no method by themselves but those that CallSpecialMethods runs anyway.
bool IsPassiveBase(absl::string_view name) {
  if (absl::EndsWith(name, "Error") || absl::EndsWith(name, "Exception")) return true;
  for (absl::string_view passive :
       {"builtins.object", "torch.autograd.Function", "torch.autograd.function.Function", "abc.ABC",
        "builtins.dict", "builtins.list", "builtins.tuple", "builtins.str", "builtins.int",
        "builtins.float", "builtins.set", "builtins.Warning"}) {
    if (name == passive) return true;
  }
  return absl::StartsWith(name, "typing.") || absl::StartsWith(name, "typing_extensions.");
}

bool IsModuleBase(absl::string_view name) { return absl::StartsWith(name, "torch.nn."); }

bool IsModuleMethod(absl::string_view name) { return Is(kModuleMethod, name); }

bool IsSpecial(absl::string_view name) {
  return absl::StartsWith(name, "__") && absl::EndsWith(name, "__");
}

}  // namespace

bool Interpreter::IsCallable(Value value) {
  if (value == nullptr) return false;
  switch (value->kind) {
    case ObjectKind::kFunction:
    case ObjectKind::kBound:
    case ObjectKind::kPartial:
      return true;
    case ObjectKind::kInstance: {
      std::string unused;
      auto* type = AsInstance(value)->type;
      return type != nullptr && ClassAttribute(type, "__call__", &unused) != nullptr;
    }
    default:
      return false;
  }
}

void Interpreter::CallWithAnything(Value function, StorageSet sources, int line, bool remote) {
  auto argument = [&] { return remote ? arena_.Remote(sources) : arena_.Guess(sources); };
  Args guess;
  guess.line = line;
  if (auto* plain = AsFunction(function)) {
    for (int i = 0; i < ParameterCount(plain); ++i) guess.positional.push_back(argument());
  } else {
    guess.rest = argument();
  }
  ++undecided_;
  ++hidden_calls_;
  Call(function, guess);
  --hidden_calls_;
  --undecided_;
}

void Interpreter::TooHidden(int line) {
  Find(LintRule::kUnresolved, line, "callbacks",
       "more is given away to be called later, or deeper inside of other things, than is followed");
}

void Interpreter::Hide(Value value, int line, int depth) {
  if (value == nullptr) return;
  budget_.Spend(1);
  if (depth > kMaxEscapeDepth || hidden_.size() >= kMostHidden) {
    const bool plain = !IsCallable(value) && AsInstance(value) == nullptr &&
                       AsList(value) == nullptr && AsDict(value) == nullptr &&
                       AsUnion(value) == nullptr;
    if (!plain) TooHidden(line);
    return;
  }
  if (auto* any = AsUnion(value)) {
    for (Value option : any->options) Hide(option, line, depth + 1);
  } else if (auto* list = AsList(value)) {
    for (Value item : list->items) Hide(item, line, depth + 1);
  } else if (auto* dict = AsDict(value)) {
    for (const auto& [key, item] : dict->items) Hide(item, line, depth + 1);
    Hide(dict->other, line, depth + 1);
  } else if (IsCallable(value) || AsInstance(value) != nullptr) {
    const bool known = std::any_of(hidden_.begin(), hidden_.end(),
                                   [value](const Hidden& h) { return h.value == value; });
    if (known) return;
    hidden_.push_back({value, line});
    // It may run now as well as later.
    if (phase_ == Phase::kForward && AsInstance(value) != nullptr)
      CallMembers(AsInstance(value), line);
  }
}

void Interpreter::MeetTensors(const std::vector<Value>& values, int line) {
  constexpr size_t kMost = 64;
  std::vector<Value> items;
  for (Value value : values) {
    items.push_back(value);
    if (auto* list = AsList(value))
      items.insert(items.end(), list->items.begin(), list->items.end());
  }
  StorageSet sources;
  for (Value item : items) {
    if (AsInstance(item) == nullptr && HoldsTensor(item)) AddTo(&sources, Reachable(item));
  }
  if (sources.empty()) return;
  for (size_t i = 0; i < items.size() && i < kMost; ++i) {
    auto* instance = AsInstance(items[i]);
    if (instance == nullptr || instance->type == nullptr) continue;
    for (absl::string_view method : {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__",
                                     "__add__", "__radd__", "__contains__", "__getitem__"}) {
      std::string unused;
      Value found = ClassAttribute(instance->type, method, &unused);
      if (found == nullptr) continue;
      ++undecided_;
      Call(BindMethod(found, instance, instance->type),
           {.positional = {arena_.Tensor(sources)}, .line = line});
      --undecided_;
    }
  }
}

void Interpreter::HandsAway(const std::string& name, int line) {
  if (phase_ == Phase::kModule) return;
  Find(LintRule::kTorchCompute, line, name,
       absl::StrCat("'", name, "' is handed to something that may call it out of sight"));
}

void Interpreter::CallCallbacks(const Args& args) {
  MeetTensors(args.All(), args.line);
  const StorageSet sources = SourcesOf(args);
  for (Value value : args.All()) {
    std::vector<Value> options{value};
    if (auto* any = AsUnion(value)) options = any->options;
    for (Value option : options) {
      if (IsCallable(option) || AsModule(option) != nullptr)
        CallWithAnything(option, sources, args.line);
      if (auto* symbol = AsSymbol(option); symbol != nullptr && IsComputingFunction(symbol->name))
        HandsAway(symbol->name, args.line);
      if (auto* partial = As<PartialObject>(option, ObjectKind::kPartial)) {
        auto* symbol = AsSymbol(partial->function);
        if (symbol != nullptr && IsComputingFunction(symbol->name))
          HandsAway(symbol->name, args.line);
      }
      if (const auto* method = As<MethodObject>(option, ObjectKind::kMethod);
          method != nullptr && AsTensor(method->self) != nullptr)
        CallWithAnything(option, sources, args.line);
      if (AsInstance(option) != nullptr || AsList(option) != nullptr || AsDict(option) != nullptr)
        Hide(option, args.line);
    }
  }
}

// All methods and properties of an object that went where they may be called.
void Interpreter::CallMembers(InstanceObject* instance, int line) {
  if (instance->type == nullptr) return;
  const bool is_model = DerivesFrom(instance->type, "torch.nn.Module");
  // What torch calls of a model (train, to, load_state_dict) gets flags, devices and names, no
  // tensors that forward computes on.
  StorageSet everything;
  for (int i = 0; i < static_cast<int>(storages_.size()) && !is_model; ++i) {
    if (storages_[i].input) everything.push_back(i);
  }
  for (Value base : std::vector<Value>(SearchOrder(instance->type))) {
    auto* type = AsClass(base);
    if (type == nullptr) continue;
    budget_.Spend(type->body->variables.size());
    if (budget_.used_up()) return;
    const auto variables = type->body->variables;
    for (const auto& [number, value] : variables) {
      auto* function = AsFunction(value);
      const std::string& name = ast_->NameOf(number);
      if (function == nullptr || IsSpecial(name) || (is_model && !IsModuleMethod(name))) continue;
      CallWithAnything(BindFunction(function, instance), everything, line, /*remote=*/true);
    }
  }
}

Value Interpreter::BindFunction(FunctionObject* function, InstanceObject* instance) {
  if (function->binding == FunctionObject::Binding::kStatic) return function;
  auto* bound = arena_.New<BoundObject>();
  bound->function = function;
  bound->self = function->binding == FunctionObject::Binding::kClass
                    ? static_cast<Value>(instance->type)
                    : instance;
  return bound;
}

// Objects of classes that derive from a library's: it calls the methods that they override.
void Interpreter::CallOverrides() {
  const std::vector<ClassObject*> classes = classes_;
  for (ClassObject* type : classes) {
    bool active = false;
    for (Value base : SearchOrder(type)) {
      const auto* library = AsSymbol(base);
      if (library == nullptr || IsPassiveBase(library->name)) continue;
      const bool module = IsModuleBase(library->name);
      const auto& variables = type->body->variables;
      active = active || !module ||
               std::any_of(variables.begin(), variables.end(), [this](const auto& variable) {
                 return IsModuleMethod(ast_->NameOf(variable.first));
               });
    }
    if (!active || !Spend()) continue;
    budget_.Spend(instances_.size() / 8);
    auto it = std::find_if(instances_.begin(), instances_.end(),
                           [type](InstanceObject* i) { return i->type == type; });
    InstanceObject* instance = it != instances_.end() ? *it : arena_.New<InstanceObject>();
    instance->type = type;
    CallMembers(instance, type->node == nullptr ? 1 : type->node->line);
  }
}

void Interpreter::CallHidden() {
  CallOverrides();
  StorageSet everything;
  for (int i = 0; i < static_cast<int>(storages_.size()); ++i) {
    if (storages_[i].input) everything.push_back(i);
  }
  for (size_t i = 0; i < hidden_.size() && Spend(); ++i) {  // it may grow meanwhile
    const Hidden hidden = hidden_[i];
    if (hidden.comprehension != nullptr) {
      frames_.push_back({.scope = hidden.scope});
      EvalComprehension(hidden.comprehension);
      frames_.pop_back();
      continue;
    }
    if (!hidden.iterables.empty()) {
      MapCall(hidden.value, hidden.iterables, hidden.line);
      continue;
    }
    if (auto* instance = AsInstance(hidden.value)) CallMembers(instance, hidden.line);
    if (IsCallable(hidden.value)) CallWithAnything(hidden.value, everything, hidden.line);
  }
}

// Runs forward until the callables no longer change. A finding if they go on changing.
void Interpreter::RunLaterCalls(Value bound, int line, Arena::State* before) {
  constexpr int kMostCalls = 10;
  uint64_t now = arena_.Callables(*before);
  ++undecided_;  // each call may be the last: its stores do not replace earlier values
  for (int call = 0; call < kMostCalls; ++call) {
    RunForward(bound, line);
    const uint64_t next = arena_.Callables(*before);
    const bool widened = arena_.Widen(before, call_count_);
    if (next == now && !widened) break;
    now = next;
    if (call + 1 == kMostCalls) {
      Find(LintRule::kUnresolved, line, "forward",
           "forward runs other code from call to call, which cannot be followed to its end");
    }
  }
  --undecided_;
}

}  // namespace tritonrl::lint
