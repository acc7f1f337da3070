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
  StorageSet sources = SourcesOf(args);
  AddTo(&sources, Reachable(function));
  for (Value value : args.All()) {
    if (HoldsTensor(value)) {
      Unresolved("call", args.line);
      break;
    }
  }
  return arena_.Unknown(sources);
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

Value Interpreter::CallFunction(FunctionObject* function, const Args& args) {
  const auto same = std::count_if(frames_.begin(), frames_.end(),
                                  [&](const Frame& f) { return f.function == function; });
  if (same >= kMaxRecursion || frames_.size() > kMaxCallDepth) {
    if (same < kMaxRecursion) Unresolved(function->name, args.line);
    return arena_.Unknown(SourcesOf(args));
  }
  Frame inner;
  inner.function = function;
  inner.is_forward = function == forward_ && same == 0;
  inner.scope = arena_.NewScope(function->closure);
  BindParameters(function, args, inner.scope, &inner);
  const Node* body = function->node->Get(Field::kBody);
  if (function->node->kind == Kind::kLambda) {
    frames_.push_back(inner);
    Value value = Eval(body);
    frames_.pop_back();
    return value;
  }
  frames_.push_back(inner);
  const Flow flow = ExecBlock(body);
  Frame done = frames_.back();
  frames_.pop_back();
  if (done.yielded != nullptr || HasYield(body)) {
    std::vector<Value> items;
    if (done.yielded != nullptr) items.push_back(done.yielded);
    return arena_.List(items, false);
  }
  if (flow == Flow::kNext) done.returned = arena_.Join(done.returned, None());
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
  if (IsNeutralModule(module->name)) {
    Value first = args.Get(0, "input");
    return AsTensor(first) != nullptr ? arena_.Tensor(AsTensor(first)->storages)
           : first != nullptr         ? first
                                      : None();
  }
  if (IsContainerModule(module->name) && !module->children.empty()) {
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
    case ObjectKind::kClass: {  // autograd.Function.apply
      InstanceObject* context = arena_.New<InstanceObject>();
      std::string symbol;
      Value forward = ClassAttribute(AsClass(self), "forward", &symbol);
      if (forward == nullptr) return CallUnknown(self, args);
      std::string unused;
      const bool old_style = ClassAttribute(AsClass(self), "setup_context", &unused) == nullptr;
      Args with_context = args;
      if (old_style) with_context.positional.insert(with_context.positional.begin(), context);
      return Call(forward, with_context);
    }
    case ObjectKind::kKernel: {
      KernelObject* kernel = AsKernel(self);
      if (method->name == "run") return LaunchKernel(kernel, args.Get(-1, "grid"), args);
      if (method->name == "__getitem__")
        return GetItem(kernel, args.Get(0, "grid"), nullptr, args.line);
      if (method->name == "warmup" || method->name == "__call__") return None();
      return arena_.Unknown();
    }
    case ObjectKind::kModule: {
      auto* module = AsModule(self);
      const std::string& name = method->name;
      if (name == "forward" || name == "__call__") return CallModule(module, args);
      if (absl::StartsWith(name, "register_") && absl::StrContains(name, "hook")) {
        Forbid(args.line, name, "hides code in a hook");
        return None();
      }
      if (name == "append" || name == "insert" || name == "add_module" || name == "extend") {
        for (Value value : args.positional) {
          bool exact = true;
          name == "extend" ? AddItems(value, &module->children, &exact)
                           : module->children.push_back(value);
        }
        return module;
      }
      if (name == "parameters" || name == "buffers" || name == "state_dict") {
        return arena_.List({InputTensor()}, false);
      }
      if (name == "children" || name == "modules" || name == "values")
        return arena_.List(module->children, false);
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
    case ObjectKind::kHost: {
      StorageSet sources = SourcesOf(args);
      AddTo(&sources, Reachable(self));
      if (method->name == "numel" || method->name == "count" || method->name == "index")
        return arena_.Int(sources);
      return arena_.Host(sources);
    }
    default: {
      if (method->name == "__get__" || method->name == "cache_clear" ||
          method->name == "cache_info")
        return self;
      return CallUnknown(self, args);
    }
  }
}

Value Interpreter::CallInstanceMethod(InstanceObject* instance, absl::string_view name,
                                      const Args& args) {
  if (instance->type == nullptr) {  // autograd's ctx
    for (Value value : args.All()) {
      instance->attributes[absl::StrCat("saved", instance->attributes.size())] = value;
    }
    return None();
  }
  const std::string* key = ConstantString(args.Get(0, "name"));
  if ((name == "register_buffer" || name == "register_parameter" || name == "add_module" ||
       name == "register_module") &&
      args.positional.size() + args.keyword.size() >= 2) {
    Value value = args.Get(1, name == "register_buffer" ? "tensor"
                              : name == "add_module"    ? "module"
                                                        : "param");
    Value& slot = instance->attributes[key == nullptr ? "*" : *key];
    slot = key == nullptr || undecided_ > 0 ? arena_.Join(slot, value) : value;
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
  if (absl::StartsWith(name, "named_")) {
    Value joined = arena_.JoinAll(values);
    return arena_.List({arena_.List({arena_.Host(), joined == nullptr ? arena_.Host() : joined})},
                       false);
  }
  if (name == "to" || name == "cuda" || name == "eval" || name == "train" || name == "half" ||
      name == "float" || name == "bfloat16" || name == "requires_grad_" || name == "__enter__" ||
      name == "double") {
    return instance;
  }
  if (name == "__exit__" || name == "extra_repr" || name == "zero_grad" ||
      name == "load_state_dict")
    return None();
  for (Value value : args.All()) {
    if (HoldsTensor(value)) {
      Unresolved(std::string(name), args.line);
      break;
    }
  }
  return arena_.Unknown(SourcesOf(args));
}

void Interpreter::AnalyseKernel(KernelObject* kernel) {
  if (kernel->analysed) return;
  kernel->analysed = true;
  // Names in a kernel mean what they mean where the kernel, or the device function around them, is
  // defined.
  auto resolve = [this, kernel](const Node* name, const Node* inside) {
    KernelAnalysis::Callee callee;
    Scope* scope = kernel->function->closure;
    for (const KernelObject* other : kernels_) {
      if (other->function->node == inside) scope = other->function->closure;
    }
    frames_.push_back({.scope = scope});
    Value value = Eval(name);
    frames_.pop_back();
    if (auto* symbol = AsSymbol(value)) callee.symbol = symbol->name;
    if (auto* device = AsKernel(value)) callee.function = device->function->node;
    if (auto* host = AsHost(value)) {
      if (const auto* i = std::get_if<int64_t>(&host->constant))
        callee.constant = static_cast<double>(*i);
      if (const auto* d = std::get_if<double>(&host->constant)) callee.constant = *d;
    }
    return callee;
  };
  kernel->info = KernelAnalysis(resolve).Analyse(kernel->function->node);
}

Value Interpreter::LaunchKernel(KernelObject* kernel, Value grid, const Args& args) {
  AnalyseKernel(kernel);
  const KernelInfo& info = kernel->info;
  const std::vector<Value> sizes =
      AsList(grid) != nullptr ? AsList(grid)->items : std::vector<Value>{grid};
  for (Value size : sizes) {
    if (ConstantInt(size) == std::optional<int64_t>(0)) {
      Find(LintRule::kKernelNotUsed, args.line, info.name,
           "the kernel is launched on an empty grid");
      return None();
    }
  }
  if (AsFunction(grid) != nullptr)
    Call(grid, {.positional = {arena_.New<DictObject>()}, .line = args.line});
  Launch launch{.kernel = kernel, .line = args.line, .arguments = SourcesOf(args)};
  const int number = static_cast<int>(launches_.size());
  auto mark = [&](Value value) {
    for (int storage : Reachable(value)) {
      storages_[storage].launches.push_back(number);
      AddTo(&storages_[storage].sources, launch.arguments);
      for (int pointee : storages_[storage].addresses) {
        storages_[pointee].launches.push_back(number);
        AddTo(&storages_[pointee].sources, launch.arguments);
      }
    }
  };
  const int parameters = static_cast<int>(info.parameters.size());
  const bool open = info.variadic || args.rest != nullptr;
  for (int p = 0; p < parameters; ++p) {
    if (info.written.count(std::min(p, 63)) == 0) continue;
    Value value = args.Get(p, info.parameters[p]);
    if (value != nullptr) mark(value);
  }
  if (open && info.stores) {
    for (Value value : args.All()) mark(value);
  }
  launches_.push_back(std::move(launch));
  if (phase_ == Phase::kForward &&
      std::find(result_->launched_kernels.begin(), result_->launched_kernels.end(), info.name) ==
          result_->launched_kernels.end()) {
    result_->launched_kernels.push_back(info.name);
    result_->launch_lines.push_back(args.line);
  }
  return None();
}

}  // namespace tritonrl::lint
