// Statements, branches and what a return gives.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {
const Node* FirstBlock(const Node* node) {
  for (const Node* child : node->children) {
    if (child->kind == Kind::kBlock) return child;
  }
  return nullptr;
}

std::string DottedText(const Node* node) {
  std::string text;
  for (const Node* child : node->children) {
    if (child->kind == Kind::kIdentifier)
      absl::StrAppend(&text, text.empty() ? "" : ".", child->text);
  }
  return text.empty() ? std::string(node->text) : text;
}

Interpreter::Flow Interpreter::ExecBlock(const Node* block) {
  if (block == nullptr) return Flow::kNext;
  if (block->kind != Kind::kBlock && block->kind != Kind::kModule) return Exec(block);
  for (const Node* child : block->children) {
    Flow flow = Exec(child);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::Exec(const Node* node) {
  if (!Spend()) return Flow::kReturn;
  switch (node->kind) {
    case Kind::kExpressionStatement:
      for (const Node* child : node->children) Eval(child);
      return Flow::kNext;
    case Kind::kReturn:
      ExecReturn(node);
      return Flow::kReturn;
    case Kind::kIf:
      return ExecIf(node);
    case Kind::kFor:
      return ExecFor(node);
    case Kind::kWhile:
      return ExecWhile(node);
    case Kind::kTry:
      return ExecTry(node);
    case Kind::kWith:
      return ExecWith(node);
    case Kind::kMatch:
      return ExecMatch(node);
    case Kind::kBreak:
      return Flow::kBreak;
    case Kind::kContinue:
      return Flow::kContinue;
    case Kind::kRaise:
      for (const Node* child : node->children) AddTo(&raised_, Reachable(Eval(child)));
      return Flow::kRaise;
    case Kind::kImport:
      ExecImport(node);
      return Flow::kNext;
    case Kind::kImportFrom:
      ExecImportFrom(node);
      return Flow::kNext;
    case Kind::kFunctionDef:
      ExecFunctionDef(node, {});
      return Flow::kNext;
    case Kind::kClassDef:
      ExecClassDef(node, {});
      return Flow::kNext;
    case Kind::kDecorated:
      ExecDecorated(node);
      return Flow::kNext;
    case Kind::kGlobal:
    case Kind::kNonlocal:
      ExecDeclaration(node);
      return Flow::kNext;
    case Kind::kAssert:
      for (const Node* child : node->children) Eval(child);  // the condition, and the message
      return Flow::kNext;
    case Kind::kDelete:
      for (const Node* child : node->children) ExecDelete(child);
      return Flow::kNext;
    case Kind::kBlock:
      return ExecBlock(node);
    case Kind::kOther:
      // A statement of a newer Python; "type(x).f = g" is parsed as one, too.
      Find(LintRule::kUnresolved, node->line, "statement",
           "a statement of a kind that the linter does not know");
      return Flow::kNext;
    default:
      return Flow::kNext;
  }
}

void Interpreter::ExecDelete(const Node* target) {
  if (target->kind == Kind::kAttribute) {
    Value object = Eval(target->Get(Field::kObject));
    auto* symbol = AsSymbol(object);
    const Node* name = target->Get(Field::kAttribute);
    if (auto* instance = AsInstance(object); instance != nullptr && instance->type != nullptr) {
      std::string unused;
      auto* property = AsFunction(ClassAttribute(instance->type, name->text, &unused));
      if (property != nullptr && property->deleter != nullptr)
        CallFunction(property->deleter, {.positional = {instance}, .line = target->line});
    }
    if (symbol != nullptr)
      Forbid(target->line, std::string(target->text), "deletes an attribute of a library");
  } else if (target->kind == Kind::kIdentifier) {
    // The name then has the meaning of the enclosing scopes, such as Python's own function.
    Scope* scope = frame().scope;
    auto& variables = scope->variables;
    auto it = std::find_if(variables.begin(), variables.end(),
                           [target](const auto& v) { return v.first == target->name; });
    if (it == variables.end() || scope->parent != nullptr) return;
    const Value kept = it->second;
    variables.erase(it);
    if (undecided_ > 0)
      variables.emplace_back(target->name, arena_.Join(kept, LookupFrom(scope, target->name)));
  } else if (target->kind == Kind::kSubscript) {
    Value container = Eval(target->Get(Field::kValue));
    for (const Node* child : target->children) {
      if (child != target->Get(Field::kValue)) Eval(child);
    }
    if (auto* list = AsList(container)) list->exact = false;
  } else {
    for (const Node* child : target->children) ExecDelete(child);
  }
}

void Interpreter::ExecReturn(const Node* node) {
  Value value = node->children.empty() ? None() : Eval(node->children[0]);
  frame().returned = arena_.Join(frame().returned, value);
  if (frame().is_forward) returned_.push_back({value, node->line, guarded_empty_ > 0});
}

Interpreter::Flow Interpreter::Branch(absl::FunctionRef<Flow()> first,
                                      absl::FunctionRef<Flow()> second) {
  Scope* scope = frame().scope;
  budget_.Spend(scope->variables.size() / 2);
  const auto before = scope->variables;
  ++undecided_;
  const Flow a = first();
  auto after_first = std::move(scope->variables);
  scope->variables = before;
  const Flow b = second();
  --undecided_;
  if (a != b) {
    NoteExit(a, after_first);
    NoteExit(b, scope->variables);
  }
  // What a returning side bound is gone; all other ways out may be seen again (loops, handlers).
  if (a == Flow::kReturn && b != Flow::kReturn) return b;
  if (b == Flow::kReturn && a != Flow::kReturn) {
    scope->variables = std::move(after_first);
    return a;
  }
  // At the top a name that only one side bound may be Python's own.
  const size_t common = before.size();
  if (scope->parent == nullptr && scope->variables.size() > common) {
    for (size_t i = common; i < scope->variables.size(); ++i) {
      auto& [name, value] = scope->variables[i];
      if (Is(kPythonBuiltin, ast_->NameOf(name)))
        value = arena_.Join(value, arena_.Symbol(absl::StrCat("builtins.", ast_->NameOf(name))));
    }
  }
  JoinVariables(after_first);
  if (a == b) return a;
  // Different ways out: what follows may run, so the one that goes on furthest wins.
  for (Flow flow : {Flow::kNext, Flow::kContinue, Flow::kBreak}) {
    if (a == flow || b == flow) return flow;
  }
  return Flow::kRaise;
}

Interpreter::Flow Interpreter::BranchBy(Value asked, absl::FunctionRef<Flow()> first,
                                        absl::FunctionRef<Flow()> second) {
  if (!CountsCalls(asked)) return Branch(first, second);
  bool leaves = false;
  auto noted = [&leaves](Flow flow) {
    leaves = leaves || flow == Flow::kReturn;
    return flow;
  };
  ++counted_;
  const Flow flow = Branch([&] { return noted(first()); }, [&] { return noted(second()); });
  --counted_;
  frame().counted = frame().counted || leaves;  // what follows runs in the other case
  return flow;
}

void Interpreter::JoinVariables(const Variables& others) {
  auto& variables = frame().scope->variables;
  for (size_t i = 0; i < others.size(); ++i) {
    const auto& [name, value] = others[i];
    // Both began with the same variables, which stand where they stood unless one was deleted.
    const bool in_place = i < variables.size() && variables[i].first == name;
    if (!in_place) budget_.SpendSearch(1, variables.size());
    if (Value* mine = in_place ? &variables[i].second : frame().scope->Find(name)) {
      *mine = arena_.Join(value, *mine);
      continue;
    }
    Value joined = value;
    const std::string& text = ast_->NameOf(name);
    if (frame().scope->parent == nullptr && Is(kPythonBuiltin, text))
      joined = arena_.Join(value, arena_.Symbol(absl::StrCat("builtins.", text)));
    variables.emplace_back(name, joined);
  }
}

void Interpreter::NoteExit(Flow flow, const Variables& variables) {
  if (flow == Flow::kReturn) {
    frame().early_return = early_exit_ = arena_.size();
  } else if (flow == Flow::kBreak || flow == Flow::kContinue) {
    early_exit_ = arena_.size();
    budget_.Spend(variables.size() / 2);
    frame().left.push_back(variables);
  }
}

void Interpreter::EndOfPass() {
  const std::vector<Variables> left = std::move(frame().left);
  frame().left.clear();
  for (const Variables& variables : left) JoinVariables(variables);
}

std::optional<bool> Interpreter::Decide(Value condition) const {
  if (hidden_calls_ > 0 && AsList(condition) != nullptr) return std::nullopt;
  return Truth(condition);
}

bool Interpreter::TestsForEmpty(const Node* condition) {
  while (condition->kind == Kind::kParenthesized && !condition->children.empty()) {
    condition = condition->children[0];
  }
  if (condition->kind == Kind::kBoolean) {
    const Node* op = condition->Get(Field::kOperator);
    const Node *left = condition->Get(Field::kLeft), *right = condition->Get(Field::kRight);
    return op != nullptr && left != nullptr && right != nullptr && op->text == "or" &&
           TestsForEmpty(left) && TestsForEmpty(right);
  }
  if (condition->kind == Kind::kNot) return absl::StrContains(condition->text, "numel");
  if (condition->kind != Kind::kComparison || condition->children.size() != 3) return false;
  const absl::string_view op = condition->children[1]->text, bound = condition->children[2]->text;
  return ((op == "==" || op == "<=") && bound == "0") || (op == "<" && bound == "1");
}

Interpreter::Flow Interpreter::ExecIf(const Node* node) {
  const Node* condition = node->Get(Field::kCondition);
  const Node* consequence = node->Get(Field::kConsequence);
  size_t next = 0;
  while (next < node->children.size() && node->children[next] != consequence) ++next;
  Value asked = Eval(condition);
  const std::optional<bool> truth = Decide(asked);
  const bool empty = TestsForEmpty(condition);
  auto then_part = [&] {
    guarded_empty_ += empty;
    const Flow flow = ExecBlock(consequence);
    guarded_empty_ -= empty;
    return flow;
  };
  auto else_part = [&] { return ExecAlternatives(node, next + 1); };
  if (truth.has_value()) return *truth ? then_part() : else_part();
  return BranchBy(asked, then_part, else_part);
}

Interpreter::Flow Interpreter::ExecAlternatives(const Node* node, size_t next) {
  const Nested nested(&call_depth_);  // each elif is an if in the else of the one before
  if (TooDeep(call_depth_, kMaxCallsInCalls, node->line)) return Flow::kNext;
  if (next >= node->children.size()) return Flow::kNext;
  const Node* child = node->children[next];
  if (child->kind == Kind::kElse) return ExecBlock(FirstBlock(child));
  if (child->kind != Kind::kElif) return ExecAlternatives(node, next + 1);
  Value asked = Eval(child->Get(Field::kCondition));
  const std::optional<bool> truth = Decide(asked);
  auto then_part = [&] { return ExecBlock(child->Get(Field::kConsequence)); };
  auto else_part = [&] { return ExecAlternatives(node, next + 1); };
  if (truth.has_value()) return *truth ? then_part() : else_part();
  return BranchBy(asked, then_part, else_part);
}

}  // namespace tritonrl::lint
