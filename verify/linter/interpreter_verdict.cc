// Findings, storages, and the judgement of what forward returns.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {
namespace {

// Steps after which a program counts as too complicated to follow. Honest programs take a few
// thousand.
constexpr int kMaxSteps = 400000;
constexpr int kMaxFindings = 40;

// How the text of a function calls what it passes callbacks to.
int ParameterCount(const FunctionObject* function) {
  const Node* parameters = function->node->Get(Field::kParameters);
  return parameters == nullptr ? 0 : static_cast<int>(parameters->children.size());
}

}  // namespace

void Interpreter::Find(LintRule rule, int line, std::string name, std::string text) {
  if (!found_.emplace(rule, line, name).second || found_.size() > kMaxFindings) return;
  result_->findings.push_back({rule, line, std::move(name), std::move(text)});
}

void Interpreter::Forbid(int line, const std::string& name, const std::string& why) {
  Find(LintRule::kForbidden, line, name, absl::StrCat("'", name, "' ", why));
}

Value Interpreter::Compute(const std::string& name, int line, StorageSet sources) {
  if (phase_ == Phase::kForward) {
    Find(LintRule::kTorchCompute, line, name,
         absl::StrCat("'", name,
                      "' computes on tensors in forward's path outside the Triton kernels"));
  }
  return NewTensor(std::move(sources));
}

void Interpreter::Unresolved(const std::string& name, int line) {
  if (phase_ != Phase::kForward) return;
  Find(LintRule::kUnresolved, line, name,
       absl::StrCat("tensors flow into '", name, "', which cannot be followed"));
}

bool Interpreter::Spend() {
  if (++steps_ <= kMaxSteps) return true;
  Find(LintRule::kUnresolved, 1, "program", "the program is too complicated to follow");
  return false;
}

int Interpreter::NewStorage(StorageSet sources) {
  storages_.push_back({.sources = std::move(sources)});
  return static_cast<int>(storages_.size()) - 1;
}

Value Interpreter::NewTensor(StorageSet sources, Shape shape) {
  return arena_.Tensor({NewStorage(std::move(sources))}, std::move(shape));
}

Value Interpreter::InputTensor(Shape shape) {
  Value tensor = NewTensor({}, std::move(shape));
  storages_.back().input = true;
  return tensor;
}

StorageSet Interpreter::SourcesOf(const Args& args) {
  StorageSet sources;
  for (Value value : args.All()) AddTo(&sources, Reachable(value));
  return sources;
}

bool Interpreter::AnyTensor(const Args& args) {
  for (Value value : args.All()) {
    if (HoldsTensor(value)) return true;
  }
  return false;
}

bool Interpreter::OnlySmall(const Args& args) {
  for (Value value : args.All()) {
    if (auto* tensor = AsTensor(value)) {
      if (!tensor->IsSmall()) return false;
    } else if (HoldsTensor(value)) {
      return false;
    }
  }
  return true;
}

bool Interpreter::AsBoundFunction(Value value) {
  return value != nullptr &&
         (value->kind == ObjectKind::kBound || value->kind == ObjectKind::kPartial ||
          value->kind == ObjectKind::kKernel || value->kind == ObjectKind::kClass);
}

void Interpreter::CallCallbacks(const Args& args) {
  StorageSet sources = SourcesOf(args);
  for (Value value : args.All()) {
    std::vector<Value> options{value};
    if (auto* any = AsUnion(value)) options = any->options;
    for (Value option : options) {
      Args guess;
      guess.line = args.line;
      if (auto* function = AsFunction(option)) {
        for (int i = 0; i < ParameterCount(function); ++i)
          guess.positional.push_back(arena_.Unknown(sources));
      } else if (option != nullptr && option->kind == ObjectKind::kBound) {
        guess.rest = arena_.Unknown(sources);
      } else {
        continue;
      }
      ++undecided_;
      Call(option, guess);
      --undecided_;
    }
  }
}

void Interpreter::Closure(const StorageSet& from, std::set<int>* storages,
                          std::set<int>* launches) {
  std::vector<int> pending(from.begin(), from.end());
  while (!pending.empty()) {
    const int storage = pending.back();
    pending.pop_back();
    if (!storages->insert(storage).second) continue;
    const Storage& s = storages_[storage];
    pending.insert(pending.end(), s.sources.begin(), s.sources.end());
    pending.insert(pending.end(), s.addresses.begin(), s.addresses.end());
    for (int launch : s.launches) {
      if (!launches->insert(launch).second) continue;
      const StorageSet& arguments = launches_[launch].arguments;
      pending.insert(pending.end(), arguments.begin(), arguments.end());
    }
  }
}

InstanceObject* Interpreter::MakeModel(ClassObject* type, int line) {
  phase_ = Phase::kInit;
  std::string symbol;
  Args args;
  args.line = line;
  if (auto* bound = ClassAttribute(type, "__init__", &symbol)) {
    if (auto* init = AsFunction(bound)) {
      for (int i = 1; i < ParameterCount(init); ++i) args.positional.push_back(arena_.Host());
      // Defaults of None would hide branches, so every parameter is a number of unknown value.
      const Node* parameters = init->node->Get(Field::kParameters);
      if (parameters != nullptr && absl::StrContains(parameters->text, "*")) {
        args.positional.clear();
        args.rest = arena_.Host();
      }
    }
  }
  Value instance = Instantiate(type, args);
  return AsInstance(instance);
}

Interpreter::Args Interpreter::ForwardArguments(FunctionObject* forward) {
  Args args;
  args.line = forward->node->line;
  const Node* parameters = forward->node->Get(Field::kParameters);
  if (parameters == nullptr) return args;
  bool first = true;
  for (const Node* p : parameters->children) {
    if (first) {  // self
      first = false;
      continue;
    }
    const Node* type = p->Get(Field::kType);
    const Node* fallback = p->Get(Field::kValue);
    const absl::string_view text = type == nullptr ? absl::string_view() : type->text;
    if (p->kind == Kind::kListSplatPattern || p->kind == Kind::kDictSplatPattern) {
      args.rest = InputTensor();
      has_forward_inputs_ = true;
    } else if (args.positional.empty() && args.rest == nullptr) {
      args.positional.push_back(InputTensor());  // whatever its annotation claims
      has_forward_inputs_ = true;
    } else if (text == "int" || text == "float" || text == "bool" || text == "str") {
      args.positional.push_back(text == "int" ? arena_.Int() : arena_.Host());
    } else if (fallback != nullptr &&
               (fallback->kind == Kind::kInteger || fallback->kind == Kind::kFloat ||
                fallback->kind == Kind::kTrue || fallback->kind == Kind::kFalse ||
                fallback->kind == Kind::kString)) {
      args.positional.push_back(arena_.Host());
    } else {
      Value input = InputTensor();
      if (fallback != nullptr && fallback->kind == Kind::kNone) input = arena_.Join(input, None());
      args.positional.push_back(input);
      has_forward_inputs_ = true;
    }
  }
  return args;
}

void Interpreter::JudgeReturn(const Returned& returned, bool others_have_kernel) {
  std::set<int> storages, launches;
  Closure(Reachable(returned.value), &storages, &launches);
  if (!launches.empty()) return;
  if (IsNone(returned.value) && others_have_kernel) return;
  if (others_have_kernel && returned.guarded_empty) return;
  const bool constant =
      std::all_of(storages.begin(), storages.end(), [this](int s) { return !storages_[s].input; });
  if (constant) {
    Find(LintRule::kHardCoded, returned.line, "return",
         "forward returns a value that depends neither on its inputs nor on a kernel");
  } else {
    Find(LintRule::kKernelNotUsed, returned.line, "return",
         "forward returns a value that no launched Triton kernel has written");
  }
}

void Interpreter::JudgeKernels(const std::set<int>& launches, const std::set<int>& storages,
                               int line) {
  bool loads = false, computes = false;
  std::string names;
  for (int launch : launches) {
    const KernelInfo& info = launches_[launch].kernel->info;
    loads = loads || info.stores_loaded;
    computes = computes || info.computes;
    absl::StrAppend(&names, names.empty() ? "" : ", ", info.name);
  }
  const int kernel_line = launches.empty() ? line : launches_[*launches.begin()].kernel->info.line;
  if (!loads) {
    Find(LintRule::kHardCoded, kernel_line, names,
         "the kernels store values that do not depend on anything they load");
  } else if (!computes) {
    Find(LintRule::kTrivialKernel, kernel_line, names,
         "the kernels only copy what they load to the same place");
  }
  const bool uses_input =
      std::any_of(storages.begin(), storages.end(), [this](int s) { return storages_[s].input; });
  if (has_forward_inputs_ && !uses_input) {
    Find(LintRule::kHardCoded, line, "forward", "the result does not depend on the inputs");
  }
}

void Interpreter::JudgeResult(int line) {
  std::set<int> storages, launches;
  for (const Returned& returned : returned_)
    Closure(Reachable(returned.value), &storages, &launches);
  if (launches_.empty() || result_->launched_kernels.empty()) {
    Find(LintRule::kKernelNotUsed, line, "forward",
         "no Triton kernel is launched on the path of forward");
    return;
  }
  if (returned_.empty()) {
    Find(LintRule::kKernelNotUsed, line, "forward", "forward returns nothing");
    return;
  }
  for (const Returned& returned : returned_) JudgeReturn(returned, !launches.empty());
  if (!launches.empty()) JudgeKernels(launches, storages, returned_.back().line);
}

bool Interpreter::RunModule() {
  module_scope_ = arena_.NewScope(nullptr);
  frames_.reserve(256);
  frames_.push_back({.scope = module_scope_});
  ExecBlock(ast_->root());
  if (!kernels_.empty()) return true;
  Find(LintRule::kNoKernel, 1, "triton.jit",
       "the program has no function decorated with triton.jit");
  return false;
}

void Interpreter::RunForward(Value bound, int line) {
  auto* method = As<BoundObject>(bound, ObjectKind::kBound);
  FunctionObject* forward = AsFunction(method != nullptr ? method->function : bound);
  returned_.clear();
  if (forward == nullptr) {
    // Something else stands in forward's place: it is called all the same, and judged by what it
    // gives.
    Value value = Call(bound, {.positional = {InputTensor()}, .line = line});
    returned_.push_back({value, line, false});
    return;
  }
  Args args = ForwardArguments(forward);
  if (method == nullptr && !args.positional.empty()) {
    args.positional.insert(args.positional.begin(), InputTensor());
  }
  forward_ = forward;
  CallOne(bound, args);
}

void Interpreter::JudgeSecondCall() {
  for (const Returned& returned : returned_) {
    std::set<int> storages, launches;
    Closure(Reachable(returned.value), &storages, &launches);
    if (launches.empty() || *launches.rbegin() >= first_call_launches_ || returned.guarded_empty)
      continue;
    Find(LintRule::kHardCoded, returned.line, "kept result",
         "a second call would return what the first one computed, without a launch");
  }
}

void Interpreter::Run() {
  if (!RunModule()) return;
  phase_ = Phase::kInit;
  Value* model = module_scope_->Find(ast_->Intern("ModelNew"));
  ClassObject* type = model == nullptr ? nullptr : AsClass(*model);
  std::string symbol;
  Value found = type == nullptr ? nullptr : ClassAttribute(type, "forward", &symbol);
  const int line = type == nullptr || type->node == nullptr ? 1 : type->node->line;
  if (found == nullptr) {
    Find(LintRule::kNoModel, line, "ModelNew",
         "the program has no class ModelNew with a method forward");
    return;
  }
  InstanceObject* instance = MakeModel(type, line);
  std::string unused;
  if (Value call = ClassAttribute(type, "__call__", &unused)) found = call;
  auto own = instance->attributes.find("forward");
  Value bound = own != instance->attributes.end() ? own->second : BindMethod(found, instance, type);
  phase_ = Phase::kForward;
  RunForward(bound, line);
  JudgeResult(line);
  // Once more in the state that the first call left behind: a result that was kept shows.
  first_call_launches_ = static_cast<int>(launches_.size());
  RunForward(bound, line);
  JudgeSecondCall();
  CallSpecialMethods();
}

void Interpreter::CallSpecialMethods() {
  StorageSet everything;
  for (int i = 0; i < static_cast<int>(storages_.size()); ++i) {
    if (storages_[i].input) everything.push_back(i);
  }
  const std::vector<InstanceObject*> instances = instances_;
  for (InstanceObject* instance : instances) {
    const auto variables = instance->type->body->variables;
    for (const auto& [number, value] : variables) {
      const std::string& name = ast_->NameOf(number);
      auto* function = AsFunction(value);
      const bool special = absl::StartsWith(name, "__") && absl::EndsWith(name, "__") &&
                           name != "__init__" && name != "__new__" && name != "__call__" &&
                           name != "__post_init__";
      if (function == nullptr || !special) continue;
      Args args;
      args.line = function->node->line;
      args.positional = {instance};
      for (int i = 1; i < ParameterCount(function); ++i)
        args.positional.push_back(arena_.Unknown(everything));
      ++undecided_;
      CallFunction(function, args);
      --undecided_;
    }
  }
}

}  // namespace tritonrl::lint
