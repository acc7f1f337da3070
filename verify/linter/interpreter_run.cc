// The order of interpretation: the module, the model's construction, forward twice.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {

namespace {

// Special methods that are called where an operator or a subscript stands, with what stands there,
// and those that only get names, exceptions or nothing.
bool IsFollowedOperator(absl::string_view name) {
  for (absl::string_view method :
       {"__add__",    "__sub__",    "__mul__",      "__truediv__", "__floordiv__", "__mod__",
        "__pow__",    "__matmul__", "__and__",      "__or__",      "__xor__",      "__lshift__",
        "__rshift__", "__radd__",   "__rsub__",     "__rmul__",    "__rtruediv__", "__rfloordiv__",
        "__rmod__",   "__rpow__",   "__eq__",       "__ne__",      "__lt__",       "__le__",
        "__gt__",     "__ge__",     "__contains__", "__getitem__", "__exit__",     "__format__",
        "__missing__"}) {
    if (name == method) return true;
  }
  return false;
}

// Kernels can be defined in functions that run later.
bool MentionsJit(const Node* node, bool in_function) {
  if (in_function && node->kind == Kind::kIdentifier && node->text == "jit") return true;
  in_function = in_function || node->kind == Kind::kFunctionDef;
  for (const Node* child : node->children) {
    if (MentionsJit(child, in_function)) return true;
  }
  return false;
}

}  // namespace

InstanceObject* Interpreter::MakeModel(ClassObject* type, int line) {
  phase_ = Phase::kInit;
  std::string symbol;
  Args args;
  args.line = line;
  if (auto* bound = ClassAttribute(type, "__init__", &symbol)) {
    if (auto* init = AsFunction(bound)) {
      // Defaults of None would hide branches, so every parameter is a number of unknown value, or a
      // function, layer or list that is its default.
      const Node* parameters = init->node->Get(Field::kParameters);
      for (int i = 1; i < ParameterCount(init); ++i) {
        Value value = arena_.Host();
        for (const auto& [parameter, fallback] : init->defaults) {
          if (parameter == parameters->children[i] && AsHost(fallback) == nullptr)
            value = arena_.Join(fallback, value);
        }
        args.positional.push_back(value);
      }
      if (parameters != nullptr && absl::StrContains(parameters->text, "*")) {
        args.positional.clear();
        args.rest = arena_.Host();
      }
    }
  }
  Value instance = Instantiate(type, args);
  return AsInstance(instance);
}

Args Interpreter::ForwardArguments(FunctionObject* forward) {
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
      args.rest = ArgumentTensor();
      has_forward_inputs_ = true;
    } else if (args.positional.empty() && args.rest == nullptr) {
      args.positional.push_back(ArgumentTensor());  // whatever its annotation claims
      has_forward_inputs_ = true;
    } else if (text == "int" || text == "float" || text == "bool" || text == "str") {
      args.positional.push_back(text == "int" ? arena_.Int() : arena_.Host());
    } else if (fallback != nullptr &&
               (fallback->kind == Kind::kInteger || fallback->kind == Kind::kFloat ||
                fallback->kind == Kind::kTrue || fallback->kind == Kind::kFalse ||
                fallback->kind == Kind::kString)) {
      args.positional.push_back(arena_.Host());
    } else if (fallback != nullptr &&
               (fallback->kind == Kind::kList || fallback->kind == Kind::kDictionary ||
                fallback->kind == Kind::kSet || fallback->kind == Kind::kTuple ||
                fallback->kind == Kind::kLambda || fallback->kind == Kind::kAttribute)) {
      args.positional.push_back(nullptr);  // no input stands for these: the default it is
    } else {
      Value input = ArgumentTensor();
      if (fallback != nullptr && fallback->kind == Kind::kNone) input = arena_.Join(input, None());
      args.positional.push_back(input);
      has_forward_inputs_ = true;
    }
  }
  return args;
}

bool Interpreter::RunModule() {
  module_scope_ = arena_.NewScope(nullptr);
  frames_.reserve(256);
  frames_.push_back({.scope = module_scope_});
  ExecBlock(ast_->root());
  if (!kernels_.empty() || MentionsJit(ast_->root(), false)) return true;
  Find(LintRule::kNoKernel, 1, "triton.jit",
       "the program has no function decorated with triton.jit");
  return false;
}

void Interpreter::RunForward(Value bound, int line) {
  auto* method = As<BoundObject>(bound, ObjectKind::kBound);
  FunctionObject* forward = AsFunction(method != nullptr ? method->function : bound);
  returned_.clear();
  small_elements_ = 0;
  if (forward == nullptr) {
    // Something else stands in forward's place: it is called all the same, and judged by what it
    // gives.
    Value value = Call(bound, {.positional = {ArgumentTensor()}, .line = line});
    returned_.push_back({value, line, false});
    return;
  }
  Args args = ForwardArguments(forward);
  if (method == nullptr && !args.positional.empty()) {
    args.positional.insert(args.positional.begin(), ArgumentTensor());
  }
  forward_ = forward;
  CallOne(bound, args);
}

void Interpreter::Run() {
  if (!RunModule()) return;
  RunModel();
  if (!kernels_.empty()) return;
  Find(LintRule::kNoKernel, 1, "triton.jit",
       "the program makes no function with triton.jit on its way");
}

void Interpreter::RunModel() {
  phase_ = Phase::kInit;
  Value* model = module_scope_->Find(ast_->Intern("ModelNew"));
  ClassObject* type = model == nullptr ? nullptr : AsClass(*model);
  std::string symbol;
  Value found = type == nullptr ? nullptr : ClassAttribute(type, "forward", &symbol);
  const int line = type == nullptr || type->node == nullptr ? 1 : type->node->line;
  if (found == nullptr && model != nullptr && type == nullptr && AsHost(*model) == nullptr) {
    Find(LintRule::kUnresolved, 1, "ModelNew",
         "which class ModelNew is in the end cannot be followed");
    return;
  }
  if (found == nullptr) {
    Find(LintRule::kNoModel, line, "ModelNew",
         "the program has no class ModelNew with a method forward");
    return;
  }
  InstanceObject* instance = MakeModel(type, line);
  if (instance != nullptr && instance->type != nullptr && instance->type != type) {
    type = instance->type;  // __new__ made something else
    found = ClassAttribute(type, "forward", &symbol);
  }
  if (instance == nullptr || found == nullptr) {
    Find(LintRule::kUnresolved, line, "ModelNew", "what ModelNew(...) makes cannot be followed");
    return;
  }
  std::string unused;
  if (Value call = ClassAttribute(type, "__call__", &unused)) found = call;
  auto own = instance->attributes.find("forward");
  Value bound = own != instance->attributes.end() ? own->second : BindMethod(found, instance, type);
  phase_ = Phase::kForward;
  (void)CountOfCalls();
  Arena::State before = arena_.Snapshot();
  const uint64_t callables = arena_.Callables(before);
  RunForward(bound, line);
  JudgeResult(line);
  if (budget_.used_up()) return;  // refused for that
  // Counters and flags that the call changed may have any value in a later one.
  arena_.Widen(&before, call_count_);
  // Once more in the state that the first call left behind: a result that was kept shows.
  first_call_launches_ = static_cast<int>(launches_.size());
  first_call_storages_ = static_cast<int>(storages_.size());
  RunForward(bound, line);
  JudgeSecondCall();
  if (budget_.used_up()) return;
  const bool widened = arena_.Widen(&before, call_count_);
  if (widened || arena_.Callables(before) != callables) RunLaterCalls(bound, line, &before);
  CallHidden();
  CallSpecialMethods();
}

void Interpreter::CallSpecialMethods() {
  StorageSet everything;
  for (int i = 0; i < static_cast<int>(storages_.size()); ++i) {
    if (storages_[i].input) everything.push_back(i);
  }
  const std::vector<InstanceObject*> instances = instances_;
  for (InstanceObject* instance : instances) {
    budget_.Spend(instance->type->body->variables.size());
    if (!Spend()) return;
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
        args.positional.push_back(IsFollowedOperator(name) ? arena_.Remote(everything)
                                                           : arena_.Guess(everything));
      ++undecided_;
      CallFunction(function, args);
      --undecided_;
    }
  }
}

}  // namespace tritonrl::lint
