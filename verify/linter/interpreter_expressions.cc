// Names, assignment targets, literals, comprehensions and subscripts.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "verify/linter/interpreter.h"

namespace tritonrl::lint {
namespace {

// Expressions in each other, through calls.
constexpr int kMaxNesting = 1000;

}  // namespace

Value Interpreter::Eval(const Node* node) {
  if (node == nullptr) return arena_.Host();
  const Nested nested(&eval_depth_);
  if (!Spend() || TooDeep(eval_depth_, kMaxNesting, node->line)) return arena_.Unknown();
  Value value = EvalNode(node);
  return value == nullptr ? arena_.Unknown() : value;
}

Value Interpreter::EvalYield(const Node* node) {
  Value value = node->children.empty() ? None() : Eval(node->children[0]);
  if (absl::StartsWith(node->text, "yield from")) value = Element(value, node->line);
  frame().yielded = arena_.Join(frame().yielded, value);
  return arena_.Unknown();
}

Value Interpreter::EvalAssignment(const Node* node) {
  const Node* right = node->Get(Field::kRight);
  if (frame().scope->is_class && phase_ == Phase::kForward) Eval(node->Get(Field::kType));
  if (right == nullptr) {  // a bare annotation: where it would be stored is evaluated
    const Node* left = node->Get(Field::kLeft);
    if (left != nullptr && left->kind != Kind::kIdentifier) {
      for (const Node* child : left->children) {
        if (child->kind != Kind::kIdentifier || left->kind == Kind::kSubscript) Eval(child);
      }
    }
    return None();
  }
  Value value = Eval(right);
  Store(node->Get(Field::kLeft), value);
  return value;
}

Value Interpreter::EvalNode(const Node* node) {
  switch (node->kind) {
    case Kind::kIdentifier:
      return Lookup(node);
    case Kind::kParenthesized:
    case Kind::kType:
      return node->children.empty() ? None() : Eval(node->children[0]);
    case Kind::kAttribute: {
      const Node* attribute = node->Get(Field::kAttribute);
      Value object = Eval(node->Get(Field::kObject));
      return attribute == nullptr ? arena_.Unknown()
                                  : GetAttribute(object, attribute->text, node->line);
    }
    case Kind::kCall:
      return EvalCall(node);
    case Kind::kSubscript:
      return EvalSubscript(node);
    case Kind::kBinary: {
      Value left = Eval(node->Get(Field::kLeft));
      Value right = Eval(node->Get(Field::kRight));
      const Node* op = node->Get(Field::kOperator);
      return Binary(op == nullptr ? "?" : op->text, left, right, node->line);
    }
    case Kind::kUnary: {
      const Node* op = node->Get(Field::kOperator);
      return Unary(op == nullptr ? "-" : op->text, Eval(node->Get(Field::kArgument)), node->line);
    }
    case Kind::kNot:
      return Unary("not", Eval(node->Get(Field::kArgument)), node->line);
    case Kind::kBoolean:
      return EvalBoolean(node);
    case Kind::kComparison:
      return EvalComparison(node);
    case Kind::kConditional:
      return EvalConditional(node);
    case Kind::kAssignment:
      return EvalAssignment(node);
    case Kind::kNamedExpression: {
      Value value = Eval(node->Get(Field::kValue));
      Scope* scope = frame().scope;
      while (scope->is_comprehension && scope->parent != nullptr) scope = scope->parent;
      std::swap(frame().scope, scope);  // it binds outside of the comprehension
      Store(node->Get(Field::kName), value);
      std::swap(frame().scope, scope);
      return value;
    }
    case Kind::kAugmentedAssignment:
      ExecAugmented(node);
      return None();
    case Kind::kYield:
      return EvalYield(node);
    case Kind::kAwait:
    case Kind::kListSplat:
      return node->children.empty() ? None() : Eval(node->children[0]);
    default:
      return EvalLiteral(node);
  }
}

Value Interpreter::EvalConditional(const Node* node) {
  if (node->children.size() != 3) return arena_.Unknown();
  Value asked = Eval(node->children[1]);
  const std::optional<bool> truth = Decide(asked);
  if (truth.has_value()) return Eval(node->children[*truth ? 0 : 2]);
  const bool counts = CountsCalls(asked);
  ++undecided_;
  counted_ += counts;
  Value first = Eval(node->children[0]);
  Value second = Eval(node->children[2]);
  counted_ -= counts;
  --undecided_;
  const bool numbers = AsHost(first) != nullptr && AsHost(second) != nullptr;
  return counts && numbers ? CountOfCalls() : arena_.Join(first, second);
}

Value Interpreter::EvalBoolean(const Node* node) {
  const Node* op = node->Get(Field::kOperator);
  const bool is_and = op != nullptr && op->text == "and";
  Value left = Eval(node->Get(Field::kLeft));
  const std::optional<bool> truth = Decide(left);
  if (truth.has_value() && *truth != is_and) return left;
  const bool counts = CountsCalls(left);
  ++undecided_;
  counted_ += counts;
  Value right = Eval(node->Get(Field::kRight));
  counted_ -= counts;
  --undecided_;
  return truth.has_value() ? right : arena_.Join(left, right);
}

Value Interpreter::EvalComparison(const Node* node) {
  Value result = nullptr;
  Value left = nullptr;
  absl::string_view op;
  for (const Node* child : node->children) {
    if (child->field == Field::kOperators) {
      op = child->text;
      continue;
    }
    Value right = Eval(child);
    if (left != nullptr) {
      Value compared = Compare(op, left, right, node->line);
      result = result == nullptr ? compared : arena_.Join(result, compared);
    }
    left = right;
  }
  return result == nullptr ? arena_.Host() : result;
}

Value Interpreter::EvalIndex(const Node* subscript) {
  if (subscript->kind != Kind::kSlice) return Eval(subscript);
  StorageSet sources;
  for (const Node* child : subscript->children) AddTo(&sources, Reachable(Eval(child)));
  Value slice = arena_.Host(sources);
  return slice;
}

Value Interpreter::EvalSubscript(const Node* node) {
  Value object = Eval(node->Get(Field::kValue));
  std::vector<Value> indices;
  const Node* first = nullptr;
  for (const Node* child : node->children) {
    if (child->field != Field::kSubscript) continue;
    if (first == nullptr) first = child;
    indices.push_back(EvalIndex(child));
  }
  if (indices.empty()) return arena_.Unknown();
  const bool single = indices.size() == 1;
  return GetItem(object, single ? indices[0] : arena_.List(indices), single ? first : nullptr,
                 node->line);
}

}  // namespace tritonrl::lint
