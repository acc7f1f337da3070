// Calls of functions, methods, instances, modules and kernels.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "verify/linter/interpreter.h"
#include "verify/linter/kernel_analysis.h"

namespace tritonrl::lint {
Value Args::Get(int index, absl::string_view name) const {
  for (const auto& [key, value] : keyword) {
    if (key == name) return value;
  }
  if (index >= 0 && index < static_cast<int>(positional.size())) return positional[index];
  return rest;
}

std::vector<Value> Args::All() const {
  std::vector<Value> all = positional;
  for (const auto& [name, value] : keyword) all.push_back(value);
  if (rest != nullptr) all.push_back(rest);
  return all;
}

Args Interpreter::EvalArgs(const Node* arguments, int line) {
  Args args;
  args.line = line;
  if (arguments == nullptr) return args;
  if (arguments->kind != Kind::kArgumentList) {  // f(x for x in y)
    args.positional.push_back(Eval(arguments));
    return args;
  }
  for (const Node* child : arguments->children) {
    if (child->kind == Kind::kKeywordArgument) {
      const Node* name = child->Get(Field::kName);
      args.keyword.emplace_back(name == nullptr ? "" : std::string(name->text),
                                Eval(child->Get(Field::kValue)));
    } else if (child->kind == Kind::kListSplat) {
      std::vector<Value> items;
      bool exact = true;
      AddItems(Eval(child->children.empty() ? nullptr : child->children[0]), &items, &exact);
      if (exact && args.rest == nullptr) {
        args.positional.insert(args.positional.end(), items.begin(), items.end());
      } else {
        args.rest = arena_.Join(args.rest, arena_.JoinAll(items));
      }
    } else if (child->kind == Kind::kDictSplat) {
      Value more = Eval(child->children.empty() ? nullptr : child->children[0]);
      if (auto* dict = AsDict(more)) {
        for (const auto& [key, value] : dict->items) {
          if (absl::StartsWith(key, "s:")) args.keyword.emplace_back(key.substr(2), value);
        }
        args.rest = arena_.Join(args.rest, dict->other);
      } else {
        args.rest = arena_.Join(args.rest, arena_.Unknown(Reachable(more)));
      }
    } else {
      args.positional.push_back(Eval(child));
    }
  }
  return args;
}

Value Interpreter::EvalCall(const Node* node) {
  Value function = Eval(node->Get(Field::kFunction));
  return Call(function, EvalArgs(node->Get(Field::kArguments), node->line));
}

Value Interpreter::Call(Value function, const Args& args) {
  const Nested nested(&call_depth_);
  if (TooDeep(call_depth_, kMaxCallsInCalls, args.line)) return arena_.Unknown();
  auto* any = AsUnion(function);
  if (any == nullptr) {
    Value value = CallOne(function, args);
    return value == nullptr ? arena_.Unknown(SourcesOf(args)) : value;
  }
  Value joined = nullptr;
  ++undecided_;
  for (Value option : any->options) {
    if (AsHost(option) != nullptr) continue;  // None beside a function
    joined = arena_.Join(joined, CallOne(option, args));
  }
  --undecided_;
  return joined == nullptr ? arena_.Unknown(SourcesOf(args)) : joined;
}

Value Interpreter::CallOne(Value function, const Args& args) {
  budget_.Spend((args.positional.size() + args.keyword.size()) / 2);
  if (function == nullptr || !Spend()) return arena_.Unknown(SourcesOf(args));
  switch (function->kind) {
    case ObjectKind::kFunction:
      return AsFunction(function)->cached ? CallCached(AsFunction(function), args)
                                          : CallFunction(AsFunction(function), args);
    case ObjectKind::kBound: {
      auto* bound = static_cast<BoundObject*>(function);
      Args with_self = args;
      with_self.positional.insert(with_self.positional.begin(), bound->self);
      return Call(bound->function, with_self);
    }
    case ObjectKind::kPartial: {
      auto* partial = static_cast<PartialObject*>(function);
      Args merged;
      merged.line = args.line;
      merged.rest = args.rest;
      merged.positional = partial->positional;
      merged.positional.insert(merged.positional.end(), args.positional.begin(),
                               args.positional.end());
      merged.keyword = args.keyword;
      merged.keyword.insert(merged.keyword.end(), partial->keyword.begin(), partial->keyword.end());
      return Call(partial->function, merged);
    }
    case ObjectKind::kClass:
      return Instantiate(AsClass(function), args);
    case ObjectKind::kInstance:
      return CallInstance(AsInstance(function), args);
    case ObjectKind::kModule:
      return CallModule(AsModule(function), args);
    case ObjectKind::kMethod:
      return CallMethod(static_cast<MethodObject*>(function), args);
    case ObjectKind::kSymbol:
      return CallSymbol(AsSymbol(function)->name, args);
    case ObjectKind::kLauncher: {
      auto* launcher = static_cast<LauncherObject*>(function);
      return LaunchKernel(launcher->kernel, launcher->grid, args);
    }
    default:
      return CallUnknown(function, args);
  }
}

Value Interpreter::CallUnknown(Value function, const Args& args) {
  CallCallbacks(args);
  StorageSet sources = SourcesOf(args);
  AddTo(&sources, Reachable(function));
  auto* unknown = As<UnknownObject>(function, ObjectKind::kUnknown);
  const bool guess = unknown != nullptr && unknown->guess;
  const bool nothing_known = (unknown != nullptr && !guess) || AsHost(function) != nullptr;
  if (nothing_known && phase_ == Phase::kForward) {
    Find(LintRule::kUnresolved, args.line, "call",
         "what is called here cannot be followed: it comes out of something unknown");
    return arena_.Unknown(sources);
  }
  for (Value value : args.All()) {
    if (HoldsTensor(value)) {
      Unresolved("call", args.line);
      break;
    }
  }
  return guess ? arena_.Guess(sources) : arena_.Unknown(sources);
}

Value Interpreter::CallInstance(InstanceObject* instance, const Args& args) {
  if (instance->type == nullptr) return arena_.Unknown(SourcesOf(args));
  std::string symbol;
  for (absl::string_view name : {"__call__", "forward"}) {
    auto own = instance->attributes.find(std::string(name));
    if (own != instance->attributes.end()) return Call(own->second, args);
    if (Value found = ClassAttribute(instance->type, name, &symbol)) {
      return Call(BindMethod(found, instance, instance->type), args);
    }
  }
  if (!symbol.empty()) {
    auto* module = arena_.New<ModuleObject>();  // class MyLinear(nn.Linear) without its own forward
    module->name = symbol;
    module->children = AttributeValues(instance);
    return CallModule(module, args);
  }
  return CallUnknown(instance, args);
}

Value Interpreter::CallModule(ModuleObject* module, const Args& args) {
  if (Is(kNeutralModule, module->name)) {
    Value first = args.Get(0, "input");
    return AsTensor(first) != nullptr ? arena_.Tensor(AsTensor(first)->storages)
           : first != nullptr         ? first
                                      : None();
  }
  if (Is(kContainerModule, module->name) && !module->children.empty()) {
    Args current = args;
    Value value = args.Get(0, "input");
    for (Value child : module->children) {
      value = Call(child, current);
      current = Args{.positional = {value}, .line = args.line};
    }
    return value == nullptr ? None() : value;
  }
  if (Value mask = DrawMask(module->name, args)) return mask;
  StorageSet sources = SourcesOf(args);
  AddTo(&sources, Reachable(module));
  return Compute(module->name, args.line, sources);
}

}  // namespace tritonrl::lint
