// Calls of functions, methods, instances, modules and kernels.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "verify/linter/interpreter.h"
#include "verify/linter/kernel_analysis.h"

namespace tritonrl::lint {
namespace {

constexpr int kMaxCallDepth = 60;
// The same function this often on the stack is a recursion that is not followed further.
constexpr int kMaxRecursion = 3;

bool IsSplat(const Node* node) {
  return node->kind == Kind::kListSplatPattern || node->kind == Kind::kDictSplatPattern;
}

bool HasYield(const Node* node) {
  for (const Node* child : node->children) {
    if (child->kind == Kind::kYield) return true;
    const bool inner = child->kind == Kind::kFunctionDef || child->kind == Kind::kLambda ||
                       child->kind == Kind::kClassDef;
    if (!inner && HasYield(child)) return true;
  }
  return false;
}

}  // namespace

Value Interpreter::Args::Get(int index, absl::string_view name) const {
  for (const auto& [key, value] : keyword) {
    if (key == name) return value;
  }
  if (index >= 0 && index < static_cast<int>(positional.size())) return positional[index];
  return rest;
}

std::vector<Value> Interpreter::Args::All() const {
  std::vector<Value> all = positional;
  for (const auto& [name, value] : keyword) all.push_back(value);
  if (rest != nullptr) all.push_back(rest);
  return all;
}

Interpreter::Args Interpreter::EvalArgs(const Node* arguments, int line) {
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
  if (function == nullptr || !Spend()) return arena_.Unknown(SourcesOf(args));
  switch (function->kind) {
    case ObjectKind::kFunction:
      return CallFunction(AsFunction(function), args);
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

void Interpreter::BindParameters(FunctionObject* function, const Args& args, Scope* scope,
                                 Frame* frame) {
  const Node* parameters = function->node->Get(Field::kParameters);
  if (parameters == nullptr) return;
  std::vector<std::string> named;
  size_t position = 0;
  bool keyword_only = false;
  for (const Node* p : parameters->children) {
    if (p->kind == Kind::kPositionalSeparator) continue;
    if (p->kind == Kind::kKeywordSeparator) {
      keyword_only = true;
      continue;
    }
    const Node* name = p;
    if (p->kind == Kind::kDefaultParameter || p->kind == Kind::kTypedDefaultParameter)
      name = p->Get(Field::kName);
    if (p->kind == Kind::kTypedParameter && !p->children.empty()) name = p->children[0];
    if (name == nullptr) continue;
    if (IsSplat(name)) {
      const Node* inner = name->children.empty() ? nullptr : name->children[0];
      if (inner == nullptr) continue;
      if (name->kind == Kind::kListSplatPattern) {
        std::vector<Value> items(
            args.positional.begin() + std::min(position, args.positional.size()),
            args.positional.end());
        if (args.rest != nullptr) items.push_back(args.rest);
        scope->variables.emplace_back(inner->name, arena_.List(items, args.rest == nullptr));
        position = args.positional.size();
        keyword_only = true;
      } else {
        auto* dict = arena_.New<DictObject>();
        for (const auto& [key, value] : args.keyword) {
          if (std::find(named.begin(), named.end(), key) == named.end())
            dict->items.emplace_back("s:" + key, value);
        }
        dict->other = args.rest;
        scope->variables.emplace_back(inner->name, dict);
      }
      continue;
    }
    named.emplace_back(name->text);
    Value value = args.Get(keyword_only ? -1 : static_cast<int>(position), name->text);
    if (!keyword_only) ++position;
    if (value == nullptr || value == args.rest) {
      for (const auto& [node, fallback] : function->defaults) {
        if (node == p) value = arena_.Join(value, fallback);
      }
    }
    if (value == nullptr) value = arena_.Unknown();
    if (frame->self == nullptr) frame->self = value;
    scope->variables.emplace_back(name->name, value);
  }
}

Value Interpreter::CallFunction(FunctionObject* function, const Args& given) {
  const auto same = std::count_if(frames_.begin(), frames_.end(),
                                  [&](const Frame& f) { return f.function == function; });
  uint64_t callables = 0;
  for (Value value : given.All()) callables = callables * 31 + CallableHash(value);
  if (same > kMaxRecursion || frames_.size() > kMaxCallDepth) {
    // What it is to call changes from level to level: the deepest may call what none here does.
    const bool turning = std::none_of(frames_.begin(), frames_.end(), [&](const Frame& f) {
      return f.function == function && f.callables == callables;
    });
    if (same <= kMaxRecursion || turning) Unresolved(function->name, given.line);
    return arena_.Guess(SourcesOf(given));
  }
  Args args = given;
  if (same == kMaxRecursion) {
    // The last level that is followed sees numbers as unknown, so that every branch is looked at.
    for (Value& value : args.positional) {
      if (AsHost(value) != nullptr) value = arena_.Host(AsHost(value)->sources);
    }
    for (auto& [name, value] : args.keyword) {
      if (AsHost(value) != nullptr) value = arena_.Host(AsHost(value)->sources);
    }
  }
  if (function->cached && phase_ == Phase::kForward && AnyTensor(args)) {
    Find(LintRule::kHardCoded, args.line, function->name,
         absl::StrCat("results of '", function->name, "' are kept by the identity of tensors"));
  }
  Frame inner;
  inner.function = function;
  inner.callables = callables;
  inner.is_forward = function == forward_ && same == 0;
  inner.scope = arena_.NewScope(function->closure);
  BindParameters(function, args, inner.scope, &inner);
  const Node* body = function->node->Get(Field::kBody);
  if (function->node->kind == Kind::kLambda) {
    frames_.push_back(inner);
    Value value = Eval(body);
    frames_.pop_back();
    if (inner.is_forward) returned_.push_back({value, function->node->line, guarded_empty_ > 0});
    return value;
  }
  frames_.push_back(inner);
  const Flow flow = ExecBlock(body);
  // Under the function's own frame, so that one that is registered for itself is a recursion.
  const std::vector<Value> also = function->also;
  std::vector<Value> others;
  for (Value other : also) {
    ++undecided_;
    others.push_back(Call(other, given));
    --undecided_;
  }
  Frame done = frames_.back();
  frames_.pop_back();
  if (done.yielded != nullptr || HasYield(body)) {
    if (phase_ != Phase::kForward && done.function != nullptr) {
      auto* later = arena_.New<PartialObject>();  // its body runs when it is asked for elements
      later->function = function;
      later->positional = given.positional;
      later->keyword = given.keyword;
      Hide(later, given.line);
    }
    std::vector<Value> items;
    if (done.yielded != nullptr) items.push_back(done.yielded);
    Value made = arena_.List(items, false);
    AsList(made)->lasts = phase_ != Phase::kForward;
    return made;
  }
  if (flow == Flow::kNext) done.returned = arena_.Join(done.returned, None());
  for (Value other : others) done.returned = arena_.Join(done.returned, other);
  return done.returned == nullptr ? None() : done.returned;
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
  StorageSet sources = SourcesOf(args);
  AddTo(&sources, Reachable(module));
  return Compute(module->name, args.line, sources);
}

}  // namespace tritonrl::lint
