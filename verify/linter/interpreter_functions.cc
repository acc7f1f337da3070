// Binds the parameters of the program's functions and runs their bodies.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "verify/linter/interpreter.h"

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

// Numbers become unknown, so that every branch is looked at.
void ForgetNumbers(Arena* arena, Args* args) {
  auto forget = [arena](Value* value) {
    if (AsHost(*value) != nullptr) *value = arena->Host(AsHost(*value)->sources);
  };
  for (Value& value : args->positional) forget(&value);
  for (auto& [name, value] : args->keyword) forget(&value);
}

}  // namespace

void Interpreter::BindParameters(FunctionObject* function, const Args& args, Scope* scope,
                                 Frame* frame) {
  const Node* parameters = function->node->Get(Field::kParameters);
  if (parameters == nullptr) return;
  budget_.SpendSearch(parameters->children.size(), 8 + args.keyword.size());
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

// Its body runs once for the same arguments; later calls give what the first one gave.
Value Interpreter::CallCached(FunctionObject* function, const Args& args) {
  uint64_t key = 0;
  for (Value value : args.All()) key = key * 31 + arena_.StateHash(value);
  const auto known = function->kept.find(key);
  const bool again = known != function->kept.end();
  Value before = again ? known->second : nullptr;
  undecided_ += again;
  Value value = arena_.Join(before, CallFunction(function, args));
  undecided_ -= again;
  function->kept[key] = value;
  return value;
}

Value Interpreter::CallFunction(FunctionObject* function, const Args& given) {
  const auto same = std::count_if(frames_.begin(), frames_.end(),
                                  [&](const Frame& f) { return f.function == function; });
  uint64_t callables = 0;
  for (Value value : given.All()) callables = callables * 31 + arena_.CallableHash(value);
  if (same > kMaxRecursion || frames_.size() > kMaxCallDepth) {
    // The callables that it gets change from level to level: the deepest level may call one that
    // no level here calls.
    const bool turning = std::none_of(frames_.begin(), frames_.end(), [&](const Frame& f) {
      return f.function == function && f.callables == callables;
    });
    if (same <= kMaxRecursion || turning) Unresolved(function->name, given.line);
    return arena_.Guess(SourcesOf(given));
  }
  Args args = given;
  if (same == kMaxRecursion) ForgetNumbers(&arena_, &args);  // the last level that is followed
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
  const size_t early_exit = early_exit_;
  loops_ += same > 0;  // a recursion goes round as a loop does
  frames_.push_back(std::move(inner));
  Value value = RunBody(function, given);
  frames_.pop_back();
  loops_ -= same > 0;
  early_exit_ = early_exit;
  return value;
}

// Runs a function in its frame, which is the last one.
Value Interpreter::RunBody(FunctionObject* function, const Args& given) {
  const Node* body = function->node->Get(Field::kBody);
  if (function->node->kind == Kind::kLambda) {
    Value value = Eval(body);
    if (frame().is_forward) returned_.push_back({value, function->node->line, guarded_empty_ > 0});
    return value;
  }
  const Flow flow = ExecBlock(body);
  // Under the function's own frame, so that one that is registered for itself is a recursion.
  const std::vector<Value> also = function->also;
  std::vector<Value> others;
  ++undecided_;
  for (Value other : also) others.push_back(Call(other, given));
  --undecided_;
  const Frame& done = frame();
  auto [generator, fresh] = generators_.try_emplace(body, false);
  if (fresh) generator->second = HasYield(body);
  if (done.yielded != nullptr || generator->second) {
    if (phase_ != Phase::kForward) {
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
  Value returned = flow == Flow::kNext ? arena_.Join(done.returned, None()) : done.returned;
  for (Value other : others) returned = arena_.Join(returned, other);
  return returned == nullptr ? None() : returned;
}

}  // namespace tritonrl::lint
